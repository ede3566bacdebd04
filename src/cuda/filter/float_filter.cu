#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/elementwise_rows.cuh"
#include "cuda/filter/float_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

// One warp handles a row. In: prepared rows [count x padded], row-major, and
// their sums; centre [padded]; slots [count]. Out: their slots. Grid: x over
// rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    round_rows(const ElementwiseRule rule, const double* centre,
               const PreparedRows from, std::int64_t count,
               const std::int32_t* slots, const ElementwiseRows to) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  RowTerms terms;
  for (std::int64_t f = lane; f < from.padded; f += kWarp)
    to.rows[slot * from.padded + f] = __float_as_uint(
        filter_entry(rule, from.rows[row * from.padded + f], centre[f], terms));
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
    const SampledRows some(sample, count, stream);
    const ElementwiseScale scale =
        elementwise_scale(some.rows.data(), some.count, depth_);
    rule_ = elementwise_rule(metric_, depth_, scale.inverse_unit);
    CUDA_CHECK(cudaMemcpyAsync(centre_.data(), scale.centre.data(),
                               scale.centre.size() * sizeof(double),
                               cudaMemcpyHostToDevice, stream.get()));
    stream.wait();
    return true;
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    round_rows<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        rule_, centre_.data(), from, count, slots, elementwise_rows(to));
    CUDA_CHECK(cudaGetLastError());
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream&) override {
    cut.twice_error = 0.0;
    cut.row_slack = elementwise_rows(rows).slack;
    cut.column_slack = elementwise_rows(columns).slack;
    const bool proportion = is_proportion(rule_.kind);
    cut.row_sum = proportion ? elementwise_rows(rows).sum : nullptr;
    cut.column_sum = proportion ? elementwise_rows(columns).sum : nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {is_proportion(rule_.kind) ? 1.0 : rule_.inverse_unit, 0.0};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    start_float_pairs(rule_.kind, elementwise_work(work, depth_), stream);
  }

 private:
  const MetricEntry& metric_;
  std::int64_t depth_;
  DeviceBuffer<double> centre_;  ///< [depth_]
  ElementwiseRule rule_;
};

}  // namespace

std::unique_ptr<PairFilter> make_elementwise_filter(const MetricEntry& metric,
                                                    const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new ElementwiseFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
