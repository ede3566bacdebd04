#pragma once

// The inputs that all parts of a search read, and points that a device holds.

#include <cstdint>

#include "core/contract/request.hpp"
#include "core/search/plan.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/emit.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/panel_stream.hpp"
#include "cuda/prepare/preparer.hpp"
#include "cuda/search/double_pass.hpp"

namespace fsknn {
namespace cuda {

class LearntForms;
class PointStore;

/// The inputs that all parts of a search read.
struct Search {
  const Request& request;
  const CudaPlan& plan;
  const PlacedPoints& rows;
  const PlacedPoints& columns;  ///< the same object for a graph
  RowRecipe prepare;
  LastStep undo;    ///< takes off the matrix's scaling
  PowerOfTwo redo;  ///< its inverse
  const Neighbours& out;
  /// For a filtered search whose points come in panels: the points in their own
  /// order, which defines their panel places.
  const PlacedPoints* in_panels = nullptr;
  /// The store in which columns that a device holds are prepared.
  PointStore* store = nullptr;
  /// Receives reports of what the devices' filters learnt; null: the devices
  /// exchange nothing that depends on it.
  LearntForms* learnt = nullptr;
};

/// Returns the kind of its lists where pairs are computed in double.
DoubleLists lists_of(const Search& search);

/// Returns the search that its filter serves.
Sought sought(const Search& search);

/// Returns the number of host threads for one of the search's devices.
int threads_of(const Search& search);

/// Prepared points on the current device, by place, padded with rows of zeros
/// to whole chunks (Arefin 2012, Eq. 1).
struct DevicePoints {
  DevicePoints() = default;
  DevicePoints(const PlacedPoints& points, const RowRecipe& prepare,
               int num_threads, std::int64_t num_places, const Stream& stream);

  /// Returns the points at places first .. first + count - 1.
  Panel panel(Place first, std::int64_t count) const {
    return {rows.data() + first.value * padded, sums.data() + first.value,
            ids.data() + first.value, first, count};
  }
  PreparedRows prepared() const { return {rows.data(), sums.data(), padded}; }
  /// Returns the inputs of correlations of these rows with neighbours among the
  /// points. row_places: see CorrelationOf.
  CorrelationOf correlations(const double* of_rows, const double* row_sums,
                             const std::int32_t* row_places = nullptr) const {
    return {of_rows,     row_sums,      row_places, rows.data(),
            sums.data(), places.data(), padded};
  }

  std::int64_t padded = 0;
  DeviceBuffer<double> rows;  ///< [num_places x padded], row-major
  DeviceBuffer<double> sums;  ///< [num_places]
  /// [num_places]: the user's numbers from 0; for queries with
  /// PlacedPoints::self, those numbers.
  DeviceBuffer<std::int32_t> ids;
  /// [the source's points]: the place of each, -1: none.
  DeviceBuffer<std::int32_t> places;
};

/// Memory for some of such points, in sequence, on the current device.
class GatheredRows {
 public:
  GatheredRows(std::int64_t most_rows, std::int64_t padded_features,
               bool with_ids)
      : padded(padded_features),
        rows_(most_rows * padded),
        sums_(most_rows),
        ids_(with_ids ? most_rows : 0) {}

  /// Gathers the points at these places (device memory), and zeros up to whole
  /// tiles of rows. Without ids it adds no padding.
  Panel gather(const DevicePoints& points, const std::int32_t* places,
               std::int64_t num_rows, const Stream& stream);

  const std::int64_t padded;

 private:
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<std::int32_t> ids_;
};

}  // namespace cuda
}  // namespace fsknn
