#include <stdexcept>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/bit_pairs.hpp"
#include "cuda/filter/half_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Flags for values that are not small whole numbers: `wild` for a row, `large`
/// for values above those of the codes.
struct OtherRows {
  int wild, large;
};

// In: x [size]. Out: largest, of whole numbers; others: 1 if there is any other
// value. Grid: any, x. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    examine_values(const double* x, std::int64_t size, int most, int* largest,
                   int* others) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  int above = 0;
  bool other = false, stop = false;
  for (int turn = 0; i < size && !other && !stop; i += step, ++turn) {
    // Other values usually appear in the first rows.
    stop = turn % 64 == 0 && *reinterpret_cast<volatile int*>(others) != 0;
    const double y = x[i];
    const bool is_near = y >= 0.0 && y <= most;
    const int whole = is_near ? static_cast<int>(y) : 0;
    other = !is_near || static_cast<double>(whole) != y;
    above = max(above, whole);
  }
  if (other) *others = 1;
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    above = max(above, __shfl_xor_sync(0xffffffffu, above, gap));
  if (threadIdx.x % kWarp == 0) atomicMax(largest, above);
}

/// The rule that turns rows into codes.
struct CodeRule {
  int bits = 1;  ///< of a value
  /// Rows with larger values are wild, too: common bits do not determine their
  /// distance from others.
  bool no_larger = false;
  BitSimilarity similarity = BitSimilarity::overlap;
};

/// [slots] the numbers kept of a row besides its code.
struct CodeValues {
  float* count;  ///< of its bits
  float* there;
  float* slack;
  explicit CodeValues(const FilterRows& rows)
      : count(rows.values),
        there(rows.values + rows.num_slots),
        slack(rows.values + 2 * rows.num_slots) {}
};

// One warp handles a row. In: prepared rows; slots [count]. Out: their codes,
// word w bits + t of features 32 w to 32 w + 31, and values. Grid: x over rows.
// Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    pack_codes(const CodeRule rule, const PreparedRows from, std::int64_t count,
               const std::int32_t* slots, const HalfRows to,
               const CodeValues values, std::int64_t features,
               OtherRows* others) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  const double* const x = from.rows + row * from.padded;
  bool wild = false, large = false;
  int sum = 0;
  for (std::int64_t f = lane; f < features; f += kWarp) {
    const double y = x[f];
    const bool is_near = y >= 0.0 && y <= static_cast<double>(kMostCommon);
    const int whole = is_near ? static_cast<int>(y) : 0;
    wild = wild || !is_near || static_cast<double>(whole) != y;
    large = large || whole > rule.bits;
    // The sum saturates just above the largest one that is used.
    sum = min(sum + whole, static_cast<int>(kMostCommon) + 1);
  }
  wild = __any_sync(0xffffffffu, wild || (rule.no_larger && large));
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    sum = min(sum + __shfl_xor_sync(0xffffffffu, sum, gap),
              static_cast<int>(kMostCommon) + 1);
  wild = wild || sum > kMostCommon;
  if (large) others->large = 1;
  std::int64_t word = 0;
  for (std::int64_t first = 0; first < features; first += kWarp) {
    const std::int64_t f = first + lane;
    const int y = f >= features ? 0 : wild ? rule.bits : static_cast<int>(x[f]);
    for (int t = 0; t < rule.bits; ++t, ++word) {
      const unsigned bits = __ballot_sync(0xffffffffu, y > t);
      if (lane == 0) *reinterpret_cast<unsigned*>(to.at(slot, 2 * word)) = bits;
    }
  }
  for (word += lane; word < to.depth / 2; word += kWarp)
    *reinterpret_cast<unsigned*>(to.at(slot, 2 * word)) = 0;
  if (lane > 0) return;
  if (wild) others->wild = 1;
  const float of_wild =
      rule.similarity == BitSimilarity::overlap ? 0.0f : kWildCount;
  values.count[slot] = wild ? of_wild : as_count(sum);
  values.there[slot] = 1.0f;
  values.slack[slot] = wild ? HUGE_VALF : 0.0f;
}

// Places slots without a point far from all others. Grid: x over slots. Block:
// kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    set_padding_apart(const CodeValues values, std::int64_t num_slots) {
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (slot < num_slots && values.there[slot] == 0.0f)
    values.count[slot] = kPaddingCount;
}

BitSimilarity similarity_of(const MetricEntry& metric) {
  if (metric.filter == FilterKind::overlap) return BitSimilarity::overlap;
  if (metric.filter == FilterKind::difference || has_squares(metric))
    return BitSimilarity::difference;
  throw std::logic_error("the metric is not of smaller values");
}

class CodeFilter final : public PairFilter {
 public:
  CodeFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows), tiles_(rows), others_(zeros<OtherRows>(1)) {
    // Both sides of a pair are the same rows, in every form that may replace
    // this one.
    tiles_.sides = 1;
    rule_.similarity = similarity_of(metric);
    rule_.no_larger = has_squares(metric);
    most_bits_ = rule_.no_larger ? 1 : rows.most_code_bits();
  }
  std::int64_t row_bytes() const override {
    return tiles_.depth * tiles_.sides * entry_of(rows_.form).bytes;
  }
  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought&, const Stream& stream) override {
    DeviceBuffer<int> d_found(2);
    clear_from(d_found, 0, stream);
    constexpr unsigned blocks = 2048;
    examine_values<<<blocks, kThreads, 0, stream.get()>>>(
        sample.rows, count * sample.padded, most_bits_, d_found.data(),
        d_found.data() + 1);
    CUDA_CHECK(cudaGetLastError());
    const std::vector<int> found = downloaded(d_found.data(), 2, stream);
    if (found[1] != 0 || most_bits_ == 0) return false;
    rule_.bits = found[0] > 0 ? found[0] : 1;
    tiles_.depth = depth_of_codes(rows_.features, rule_.bits);
    return true;
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    pack_codes<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        rule_, from, count, slots, tiled_halves(to, tiles_, 0), CodeValues(to),
        rows_.features, others_.data());
    CUDA_CHECK(cudaGetLastError());
  }
  bool suits(const Stream& stream) override {
    const OtherRows others = others_found(stream);
    return others.wild == 0 && others.large == 0;
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream& stream) override {
    wild_ = others_found(stream).wild != 0;
    if (rule_.similarity == BitSimilarity::difference)
      for (const FilterRows& side : {rows, columns}) {
        if (side.num_slots == 0) continue;
        set_padding_apart<<<static_cast<unsigned>(
                                (side.num_slots + kThreads - 1) / kThreads),
                            kThreads, 0, stream.get()>>>(CodeValues(side),
                                                         side.num_slots);
        CUDA_CHECK(cudaGetLastError());
      }
    cut.twice_error = 2.0 * error();
    cut.row_slack = wild_ ? CodeValues(rows).slack : nullptr;
    cut.column_slack = wild_ ? CodeValues(columns).slack : nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    // Squared distances are halved in any case (limits.hpp).
    return rule_.similarity == BitSimilarity::overlap || rule_.no_larger
               ? SimilarityUnits{1.0, error(), 0.0}
               : SimilarityUnits{0.5, error(), 0.0};
  }
  bool tells_sums() const override { return !wild_; }
  void start(const FilterWork& work, cudaStream_t stream) override {
    HalfWork bits = half_work(work, tiles_);
    bits.column_there = CodeValues(work.columns).there;
    bits.column_numbers[0] = CodeValues(work.columns).count;
    bits.row_numbers[0] = CodeValues(work.rows).count;
    start_bit_pairs(rule_.similarity, Sign::signed_value, bits, stream);
  }

 private:
  double error() const {
    return rule_.similarity == BitSimilarity::overlap ? kBitError : 0.0;
  }
  OtherRows others_found(const Stream& stream) const {
    return downloaded(others_.data(), stream);
  }

  RowsInForm tiles_;  ///< with the depth of the codes
  CodeRule rule_;
  int most_bits_ = 0;
  bool wild_ = false;
  DeviceBuffer<OtherRows> others_;
};

}  // namespace

std::unique_ptr<PairFilter> make_code_filter(const MetricEntry& metric,
                                             const RowsInForm& rows) {
  if (metric.is_unit_dot()) return make_two_value_filter(metric, rows);
  return std::unique_ptr<PairFilter>(new CodeFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
