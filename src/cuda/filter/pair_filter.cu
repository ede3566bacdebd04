#include "cuda/filter/pair_filter.cuh"

#include "cuda/filter/elementwise.cuh"
#include "cuda/filter/filter.cuh"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_pair_filter(const MetricEntry& metric,
                                             std::int64_t num_features) {
  if (metric.is_elementwise())
    return make_elementwise_filter(metric, num_features);
  return make_half_filter(metric, num_features);
}

}  // namespace cuda
}  // namespace fsknn
