#pragma once

// Stage "prepare" on the device: R's memory, or any source of rows, to the rows
// that pairs are computed from, bit for bit as core/prepare.hpp makes them.
//
// Host threads copy stretches of the matrix into pinned memory, piece by piece,
// while the devices copy and prepare the pieces before. The host never holds
// the matrix in another form.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/metrics.hpp"
#include "core/source.hpp"

namespace fsknn {
namespace cuda {

/// What a metric does to the rows of a matrix.
struct PrepareRule {
  PrepareRule(const MetricEntry& metric, int exponent)
      : form(metric.row_form),
        scale(power_of_two(-exponent)),
        needs_sums(metric.matrix_scale == MatrixScale::overlap) {}
  RowForm form;
  PowerOfTwo scale;  ///< the matrix's; raw rows only
  bool needs_sums;   ///< a sum that is not above 0 is beyond range
};

/// Where prepared rows go on one device. Pointers are device memory.
struct PrepareTarget {
  int device = 0;                ///< CUDA's own number
  cudaStream_t stream = nullptr; ///< of that device: all its work goes here
  double* rows = nullptr;        ///< [.. x padded], row-major
  double* sums = nullptr;        ///< [..]; 0 but for raw rows. May be null
  /// [num_points] the row that each of the source's points goes to, -1: none.
  /// Null: the points come one after the other, from row 0 on.
  const std::int32_t* places = nullptr;
};

/// Prepares rows of one source on one device or several. Used by one host
/// thread at a time, which need not have any of the devices as its current one.
class Preparer {
 public:
  /// devices: CUDA's own numbers. The source must outlive this.
  Preparer(const RowSource& source, const PrepareRule& rule, int num_threads,
           std::vector<int> devices);
  ~Preparer();  ///< waits for what is under way
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;

  /// Points first .. first + count - 1 to every target (one a device, in the
  /// order of `devices`). Returns when the host's part is done: the rows are
  /// there for whatever is put on the targets' streams after.
  void prepare(std::int64_t first, std::int64_t count,
               const std::vector<PrepareTarget>& targets);

  /// As prepare(), of the points ids[0 .. count - 1] (ascending is faster), to
  /// rows 0 .. count - 1 (`places` must be null).
  void prepare_some(const std::int32_t* ids, std::int64_t count,
                    const std::vector<PrepareTarget>& targets);

  /// Waits for the devices. Throws RangeFailure where a row's sum was beyond
  /// range. To be called once after the last prepare() of a source.
  void check();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes that a Preparer holds on each device, for the plan.
double bytes_preparing(std::int64_t num_points, std::int64_t num_features);

}  // namespace cuda
}  // namespace fsknn
