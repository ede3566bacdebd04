#pragma once

// The stage "prepare" on the device: converts R's memory, or any source of
// rows, to the rows from which pairs are computed. They equal those of
// core/contract/prepare.hpp bit for bit.
//
// Host threads copy ranges of the matrix into pinned memory, piece by piece,
// while the devices copy and prepare the previous pieces. The host never holds
// the matrix in another form.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/metric.hpp"
#include "core/contract/scaling.hpp"
#include "core/rows/order.hpp"
#include "core/rows/source.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {

/// The points of a source that take part, and the place of each.
struct PlacedPoints {
  PlacedPoints() = default;
  PlacedPoints(const RowSource& from, const std::vector<std::int64_t>& skip,
               bool shuffle)
      : source(&from),
        num_features(from.num_features()),
        padded(padded_features(num_features)),
        order(order_points(from.num_points(), skip, shuffle)) {}
  const RowSource* source = nullptr;
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< features after padding, a multiple of 8
  PointOrder order;
  /// For queries: the number of the point that each is, by place; kNoPoint:
  /// none. Empty: none of them is a point.
  std::vector<std::int32_t> self;
  std::int64_t size() const { return order.num_active(); }
  /// By place: the numbers of points that are excluded as neighbours.
  const std::int32_t* own_ids() const {
    return self.empty() ? order.id.data() : self.data();
  }
};

/// The destination of prepared rows on one device. Pointers are device memory.
struct PrepareTarget {
  int device = 0;                 ///< CUDA's own number
  cudaStream_t stream = nullptr;  ///< of that device: all its work runs here
  double* rows = nullptr;         ///< [.. x padded], row-major
  double* sums = nullptr;         ///< [..]; prepare_row()'s. May be null
  /// [num_points] the place of each of the source's points, -1: none. Those
  /// from first_place on, num_places of them, go to rows 0, 1, ... of `rows`;
  /// others are skipped. Null: the points follow each other, from row 0 on.
  const std::int32_t* places = nullptr;
  Place first_place = {0};
  std::int64_t num_places = std::int64_t{1} << 31;
};

/// Prepares rows of one source on one or several devices. Used by one host
/// thread at a time, which need not have any of the devices as its current one.
/// It holds bytes_preparing() (panels.hpp) on each device.
class Preparer {
 public:
  /// devices: CUDA's own numbers. The source must outlive this. most_rows: in
  /// transfer at a time, to save memory; 0: as many as are fast.
  Preparer(const RowSource& source, const RowRecipe& recipe, int num_threads,
           std::vector<int> devices, std::int64_t most_rows = 0);
  ~Preparer();  ///< waits for work in progress
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;

  /// Prepares points first .. first + count - 1 for every target (one a device,
  /// in the order of `devices`). Returns when the host's part is finished. Work
  /// that is put on the targets' streams afterwards finds the rows.
  void prepare(PointId first, std::int64_t count,
               const std::vector<PrepareTarget>& targets);

  /// Prepares successive points: begin() announces them, and each next() is a
  /// prepare() of the next ones. Host threads copy ahead from one to the next,
  /// so that they need not wait while the caller starts work on the previous
  /// ones. Any other preparation ends it.
  struct Range {
    PointId first = {0};
    std::int64_t count = 0;
  };
  void begin(const std::vector<Range>& ranges);
  void next(const std::vector<PrepareTarget>& targets);

  /// Does what prepare() does, for the points ids[0 .. count - 1] (ascending is
  /// faster), to rows 0 .. count - 1 (`places` must be null).
  void prepare_some(const std::int32_t* ids, std::int64_t count,
                    const std::vector<PrepareTarget>& targets);

  /// Throws RangeFailure if the sum of a row was out of range; waits for the
  /// devices if that is possible. To be called after the last prepare(), before
  /// the targets' streams are destroyed.
  void check();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cuda
}  // namespace fsknn
