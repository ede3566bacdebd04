#pragma once

// What all parts of a search read, and points that a device holds.

#include <cstdint>

#include "core/contract/request.hpp"
#include "core/search/plan.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/panel_stream.hpp"
#include "cuda/prepare/preparer.hpp"
#include "cuda/search/double_pass.hpp"

namespace fsknn {
namespace cuda {

class LearntForms;
class PointStore;

/// What all parts of a search read.
struct Search {
  const Request& request;
  const CudaPlan& plan;
  const PlacedPoints& rows;
  const PlacedPoints& columns;  ///< the same object for a graph
  RowRecipe prepare;
  PowerOfTwo undo;  ///< takes off the matrix's scaling
  PowerOfTwo redo;  ///< its inverse
  const Neighbours& out;
  /// Of a filtered search whose points come in panels: the points in their own
  /// order, in which they have their panel places.
  const PlacedPoints* in_panels = nullptr;
  /// Where columns that a device holds are prepared.
  PointStore* store = nullptr;
  /// Where devices tell what their filter learnt; null: they exchange nothing
  /// that depends on it.
  LearntForms* learnt = nullptr;
};

/// Its lists where pairs are made in double.
DoubleLists lists_of(const Search& search);

/// What its filter is to find.
Sought sought(const Search& search);

/// Host threads for one of the search's devices.
int threads_of(const Search& search);

/// Prepared points on the current device, by place, padded with rows of zeros
/// to whole chunks (Arefin 2012, Eq. 1).
struct DevicePoints {
  DevicePoints() = default;
  DevicePoints(const PlacedPoints& points, const RowRecipe& prepare,
               int num_threads, std::int64_t num_places, const Stream& stream);

  /// Points at places first .. first + count - 1.
  Panel panel(Place first, std::int64_t count) const {
    return {rows.data() + first.value * padded, sums.data() + first.value,
            ids.data() + first.value, first, count};
  }
  PreparedRows prepared() const { return {rows.data(), sums.data(), padded}; }

  std::int64_t padded = 0;
  DeviceBuffer<double> rows;  ///< [num_places x padded], row-major
  DeviceBuffer<double> sums;  ///< [num_places]
  /// [num_places]: the user's numbers from 0; of queries with
  /// PlacedPoints::self what that says.
  DeviceBuffer<std::int32_t> ids;
  /// [the source's points]: where each stands, -1: nowhere.
  DeviceBuffer<std::int32_t> places;
};

/// Room for some of such points, one after the other, on the current device.
class GatheredRows {
 public:
  GatheredRows(std::int64_t most_rows, std::int64_t padded_features,
               bool with_ids)
      : padded(padded_features),
        rows_(most_rows * padded),
        sums_(most_rows),
        ids_(with_ids ? most_rows : 0) {}

  /// Those at these places (device memory), and zeros to whole tiles of rows,
  /// or, without ids, no more than those.
  Panel gather(const DevicePoints& points, const std::int32_t* places,
               std::int64_t num_rows, const Stream& stream);

  const std::int64_t padded;

 private:
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<std::int32_t> ids_;
};

}  // namespace cuda
}  // namespace fsknn
