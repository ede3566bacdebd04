// Exposes the stage "prepare" alone to tests.

#include "core/rows/prepared.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/number_forms.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {

void prepared_rows(const Request& asked, const RowSource& points,
                   const std::vector<std::int32_t>* ids, double* rows,
                   double* sums) {
  const Request request = suited(asked, points, nullptr);
  check_metric(*request.metric);
  PrepareTarget target;
  target.device = start_devices(request.devices)[0].cuda_id;
  const DeviceGuard guard(target.device);
  const std::int64_t padded = padded_features(points.num_features());
  const std::int64_t count = ids == nullptr
                                 ? points.num_points()
                                 : static_cast<std::int64_t>(ids->size());
  Stream stream;
  DeviceBuffer<double> d_rows(count * padded), d_sums(count);
  target.stream = stream.get();
  target.rows = d_rows.data();
  target.sums = d_sums.data();
  const int exponent =
      common_exponent(request, points, nullptr, request.num_threads);
  Preparer preparer(points, recipe_of(request, exponent), request.num_threads,
                    {target.device});
  if (ids == nullptr)
    preparer.prepare(PointId{0}, count, {target});
  else
    preparer.prepare_some(ids->data(), count, {target});
  preparer.check();
  download(rows, d_rows, count * padded, stream);
  download(sums, d_sums, count, stream);
  stream.wait();
}

}  // namespace cuda
}  // namespace fsknn
