// Handles rows of length 1 with two values each, such as rows of 0 and 1 under
// correlations and cosine: one bit tells which. See bit_bound.hpp.

#include <algorithm>
#include <cstring>
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

constexpr unsigned kWholeWarp = 0xffffffffu;
/// The rows that are examined to exclude other values.
constexpr std::int64_t kSample = 1024;
/// A row with more of one value than this for each of the other has
/// correlations of insufficient accuracy.
constexpr double kMostRatio = 4096.0;

/// The findings about rows.
struct RowsFound {
  int others;              ///< 1: some have more values, or others than stated
  unsigned largest_ratio;  ///< a float's bits, which order as it does
};

/// Finds a row's lowest and highest value, and the number of features with
/// each, by the whole warp.
struct LowAndHigh {
  double low, high;
  int lows = 0, highs = 0;
  bool only = true;  ///< there are no others

  __device__ LowAndHigh(const double* x, std::int64_t features, int lane)
      : low(x[0]), high(x[0]) {
    for (std::int64_t f = lane; f < features; f += kWarp) {
      low = x[f] < low ? x[f] : low;
      high = x[f] > high ? x[f] : high;
    }
    for (int gap = kWarp / 2; gap > 0; gap /= 2) {
      const double other_low = __shfl_xor_sync(kWholeWarp, low, gap);
      const double other_high = __shfl_xor_sync(kWholeWarp, high, gap);
      low = other_low < low ? other_low : low;
      high = other_high > high ? other_high : high;
    }
    for (std::int64_t f = lane; f < features; f += kWarp) {
      const bool is_high = x[f] == high;
      highs += is_high;
      lows += !is_high && x[f] == low;
      // A NaN is neither.
      only = only && (is_high || x[f] == low);
    }
    for (int gap = kWarp / 2; gap > 0; gap /= 2) {
      lows += __shfl_xor_sync(kWholeWarp, lows, gap);
      highs += __shfl_xor_sync(kWholeWarp, highs, gap);
    }
    only = __all_sync(kWholeWarp, only);
  }
  /// Returns whether the values are those of rows of 0 and 1, centred or not.
  __device__ bool suits(bool centred) const {
    return only && high > 0.0 &&
           (centred ? low < 0.0 : low == 0.0 || low == high);
  }
};

// One warp handles a row. In: prepared rows. Out: found, except the ratio.
// Grid: x over rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    examine_rows(const PreparedRows from, std::int64_t count,
                 std::int64_t features, bool centred, RowsFound* found) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count || *reinterpret_cast<volatile int*>(&found->others) != 0)
    return;
  const LowAndHigh values(from.rows + row * from.padded, features, lane);
  if (lane == 0 && !values.suits(centred)) found->others = 1;
}

// One warp handles a row. In: prepared rows; slots [count]. Out: their bits,
// set for the higher value, 2 to a half's 32 features; difference, mean
// [slots]; found. Grid: x over rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    pack_two_values(const bool centred, const PreparedRows from,
                    std::int64_t count, const std::int32_t* slots,
                    const HalfRows to, float* difference, float* mean,
                    std::int64_t features, RowsFound* found) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  const double* const x = from.rows + row * from.padded;
  const LowAndHigh values(x, features, lane);
  for (std::int64_t half = 0; half < to.depth; half += 2) {
    const std::int64_t f = 16 * half + lane;
    const unsigned bits =
        __ballot_sync(kWholeWarp, f < features && x[f] == values.high);
    if (lane == 0) *reinterpret_cast<unsigned*>(to.at(slot, half)) = bits;
  }
  if (lane > 0) return;
  const double highs = values.highs, lows = values.lows;
  const double to_one = from.to_length_one(row);
  const double high = values.high * to_one, low = values.low * to_one;
  const double length = highs * (high * high) + lows * (low * low);
  const double sum = highs * high + lows * low;
  const double ratio = centred ? highs / lows : 0.0;
  const bool sound = values.suits(centred) && fabs(length - 1.0) <= 0x1p-30 &&
                     (!centred || fabs(sum) <= 0x1p-30) && ratio <= kMostRatio;
  if (!sound) {
    found->others = 1;
    return;
  }
  atomicMax(&found->largest_ratio, __float_as_uint(__double2float_ru(ratio)));
  // In a row where all bits are set, the difference is the distance of its only
  // value from 0.
  const double between = centred ? high - low : high;
  const TwoValues kept =
      two_values(between, centred, highs, static_cast<double>(features));
  difference[slot] = kept.difference;
  mean[slot] = kept.mean;
}

/// Return the addresses of a slot's numbers. For points `difference` is never
/// 0; for padding it is.
float* difference_of(const FilterRows& rows) { return rows.values; }
float* mean_of(const FilterRows& rows) { return rows.values + rows.num_slots; }

class TwoValueFilter final : public PairFilter {
 public:
  TwoValueFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows),
        sign_(metric.sign),
        tiles_(rows),
        found_(zeros<RowsFound>(1)) {
    centred_ = metric.row_form != RowForm::unit;
    tiles_.sides = 1;
    tiles_.depth = depth_of_codes(rows.features, 1);
  }
  std::int64_t row_bytes() const override {
    return tiles_.depth * tiles_.sides * entry_of(rows_.form).bytes;
  }
  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought&, const Stream& stream) override {
    const std::int64_t rows = std::min(count, kSample);
    examine_rows<<<blocks_of_warps(rows), kThreads, 0, stream.get()>>>(
        sample, rows, rows_.features, centred_, found_.data());
    CUDA_CHECK(cudaGetLastError());
    return found_of(stream).others == 0;
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    pack_two_values<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        centred_, from, count, slots, tiled_halves(to, tiles_, 0),
        difference_of(to), mean_of(to), rows_.features, found_.data());
    CUDA_CHECK(cudaGetLastError());
  }
  bool suits(const Stream& stream) override {
    return found_of(stream).others == 0;
  }
  void set_errors(Cut& cut, const FilterRows&, const FilterRows&,
                  const Stream& stream) override {
    const RowsFound found = found_of(stream);
    // The plan uses bits only for rows that were examined.
    if (found.others != 0)
      throw std::logic_error("rows of two values have others");
    float ratio;
    static_assert(sizeof ratio == sizeof found.largest_ratio, "its bits");
    std::memcpy(&ratio, &found.largest_ratio, sizeof ratio);
    error_ = product_error(static_cast<double>(ratio));
    cut.twice_error = 2.0 * error_;
    cut.row_slack = cut.column_slack = nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {1.0, error_, 0.0};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    HalfWork bits = half_work(work, tiles_);
    bits.column_there = difference_of(work.columns);
    bits.column_numbers[0] = difference_of(work.columns);
    bits.column_numbers[1] = mean_of(work.columns);
    bits.row_numbers[0] = difference_of(work.rows);
    bits.row_numbers[1] = mean_of(work.rows);
    start_bit_pairs(BitSimilarity::product, sign_, bits, stream);
  }

 private:
  RowsFound found_of(const Stream& stream) const {
    return downloaded(found_.data(), stream);
  }

  const Sign sign_;
  RowsInForm tiles_;  ///< with the depth of the bits
  bool centred_ = false;
  double error_ = 0.0;
  DeviceBuffer<RowsFound> found_;
};

}  // namespace

std::unique_ptr<PairFilter> make_two_value_filter(const MetricEntry& metric,
                                                  const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new TwoValueFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
