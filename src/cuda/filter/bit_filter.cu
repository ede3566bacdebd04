#include "cuda/device/warps.cuh"
#include "cuda/filter/bit_pairs.hpp"

#include <stdexcept>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/half_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

// One warp handles a row. In: prepared rows; slots [count]. Out: their bits, 2
// to a half's 32 features; counts [slots]; others: 1 if an entry is neither 0
// nor 1. Grid: x over rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    pack_rows(const PreparedRows from, std::int64_t count,
              const std::int32_t* slots, const HalfRows to, float* counts,
              int* others) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  bool other = false;
  int sum = 0;
  for (std::int64_t half = 0; half < to.depth; half += 2) {
    const std::int64_t f = 16 * half + lane;
    const double x = f < from.padded ? from.rows[row * from.padded + f] : 0.0;
    const bool is_set = x != 0.0;
    other |= is_set && x != 1.0;
    const unsigned bits = __ballot_sync(0xffffffffu, is_set);
    sum += __popc(bits);
    if (lane == 0) *reinterpret_cast<unsigned*>(to.at(slot, half)) = bits;
  }
  if (other) *others = 1;
  if (lane == 0) counts[slot] = as_count(sum);
}

class BitFilter final : public PairFilter {
 public:
  explicit BitFilter(const RowsInForm& rows)
      : PairFilter(rows), others_(zeros<int>(1)) {}
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    pack_rows<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        from, count, slots, tiled_halves(to, rows_, 0), to.values,
        others_.data());
    CUDA_CHECK(cudaGetLastError());
  }
  void set_errors(Cut& cut, const FilterRows&, const FilterRows&,
                  const Stream& stream) override {
    // The caller that requests bits has checked all values.
    if (downloaded(others_.data(), stream) != 0)
      throw std::logic_error("rows of 0 and 1 have other values");
    cut.twice_error = 2.0 * kBitError;
    cut.row_slack = cut.column_slack = nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {1.0, kBitError, 0.0};
  }
  bool tells_sums() const override { return true; }
  void start(const FilterWork& work, cudaStream_t stream) override {
    HalfWork bits = half_work(work, rows_);
    // Padding has zeros.
    bits.column_there = bits.column_numbers[0] = work.columns.values;
    bits.row_numbers[0] = work.rows.values;
    start_bit_pairs(BitSimilarity::overlap, Sign::signed_value, bits, stream);
  }

 private:
  DeviceBuffer<int> others_;
};

}  // namespace

std::unique_ptr<PairFilter> make_bit_filter(const MetricEntry&,
                                            const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new BitFilter(rows));
}

}  // namespace cuda
}  // namespace fsknn
