#include "cuda/device/check.cuh"
#include "cuda/filter/float_pairs.cuh"

#include <algorithm>

#include "cuda/device/resources.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
// Points that centres and unit are made from.
constexpr std::int64_t kSample = 256;

__device__ inline RowTerms terms_of_warp(const ElementwiseRule& rule,
                                         RowTerms terms) {
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    add_terms(rule, terms,
              {__shfl_xor_sync(0xffffffffu, terms.size, gap),
               __shfl_xor_sync(0xffffffffu, terms.rounding, gap),
               __shfl_xor_sync(0xffffffffu, terms.clamped, gap)});
  return terms;
}

// One warp a row. In: prepared rows [count x padded], row-major, and their
// sums; centre [padded]; slots [count]. Out: their slots. Grid: x over rows.
// Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    round_rows(const ElementwiseRule rule, const double* centre,
               const PreparedRows from, std::int64_t count,
               const std::int32_t* slots, const ElementwiseRows to) {
  const std::int64_t row =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  RowTerms terms;
  for (std::int64_t f = lane; f < from.padded; f += kWarp)
    to.rows[slot * from.padded + f] =
        filter_entry(rule, from.rows[row * from.padded + f], centre[f], terms);
  terms = terms_of_warp(rule, terms);
  if (lane > 0) return;
  const RowBounds bounds = row_bounds(rule, terms, from.sums[row]);
  to.room[slot] = bounds.room;
  to.slack[slot] = bounds.slack;
  to.sum[slot] = bounds.sum;
}

class ElementwiseFilter final : public PairFilter {
 public:
  ElementwiseFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows),
        metric_(metric),
        depth_(rows.depth),
        centre_(depth_) {}

  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought&, const Stream& stream) override {
    const std::int64_t few = std::min(count, kSample);
    const std::size_t bytes = static_cast<std::size_t>(depth_) * sizeof(double);
    // No farther apart than a copy's rows may be.
    const std::size_t apart = std::min(
        static_cast<std::size_t>(count / std::max<std::int64_t>(1, few)),
        (std::size_t{1} << 30) / bytes + 1);
    std::vector<double> rows(static_cast<std::size_t>(few * depth_));
    if (few > 0) {
      CUDA_CHECK(cudaMemcpy2DAsync(
          rows.data(), bytes, sample.rows, bytes * apart, bytes,
          static_cast<std::size_t>(few), cudaMemcpyDeviceToHost, stream.get()));
      stream.wait();
    }
    const ElementwiseScale scale = elementwise_scale(rows.data(), few, depth_);
    rule_ = elementwise_rule(metric_, depth_, scale.inverse_unit);
    CUDA_CHECK(cudaMemcpyAsync(centre_.data(), scale.centre.data(), bytes,
                               cudaMemcpyHostToDevice, stream.get()));
    stream.wait();
    return true;
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    start_elementwise_rows(rule_, centre_.data(), from, count, slots,
                           floats(to), stream);
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream&) override {
    cut.twice_error = 0.0;
    cut.row_slack = floats(rows).slack;
    cut.column_slack = floats(columns).slack;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {is_proportion(rule_.kind) ? 1.0 : rule_.inverse_unit, 0.0};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    start_elementwise_pairs(rule_,
                            {floats(work.rows), floats(work.columns), depth_,
                             work.lists, work.pairs, work.jobs},
                            stream);
  }

 private:
  static ElementwiseRows floats(const FilterRows& rows) {
    return {static_cast<float*>(rows.rows), rows.values,
            rows.values + rows.num_slots, rows.values + 2 * rows.num_slots};
  }

  const MetricEntry& metric_;
  std::int64_t depth_;
  DeviceBuffer<double> centre_;  ///< [depth_]
  ElementwiseRule rule_;
};

}  // namespace

void start_elementwise_rows(const ElementwiseRule& rule, const double* centre,
                            const PreparedRows& from, std::int64_t count,
                            const std::int32_t* slots,
                            const ElementwiseRows& to, cudaStream_t stream) {
  if (count == 0) return;
  const std::int64_t rows_a_block = kThreads / kWarp;
  const std::int64_t grid = (count + rows_a_block - 1) / rows_a_block;
  round_rows<<<static_cast<unsigned>(grid), kThreads, 0, stream>>>(
      rule, centre, from, count, slots, to);
  CUDA_CHECK(cudaGetLastError());
}

std::unique_ptr<PairFilter> make_elementwise_filter(const MetricEntry& metric,
                                                    const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new ElementwiseFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
