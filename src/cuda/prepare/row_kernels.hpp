#pragma once

// The kernels of the stage "prepare". They move a panel of rows to their places
// and convert them there to the form from which pairs are computed:
// row_kernels.cu, and ranks.cu for the ranks.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/rows/metafeatures.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {

/// The threads of a block that computes one row.
static constexpr int kMakeThreads = 128;

/// A panel's rows and the destination of each. All pointers are device memory.
struct PanelRows {
  std::int64_t count = 0;  ///< rows of the panel
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< a multiple of 8
  /// [count] the destination row in `rows` of each, before `first_place` is
  /// subtracted; rows outside [first_place, first_place + num_places) are
  /// skipped. Null: they go to rows 0, 1, ...
  const std::int32_t* places = nullptr;
  std::int64_t first_place = 0, num_places = 0;
  double* rows = nullptr;  ///< [.. x padded], row-major
  double* sums = nullptr;  ///< [..]; may be null

  /// Returns the destination of the panel's row r; -1: none.
  FSKNN_HD std::int64_t target(std::int64_t r) const {
    if (r >= count) return -1;
    if (places == nullptr) return r;
    const std::int64_t at = places[r] - first_place;
    return places[r] >= 0 && at >= 0 && at < num_places ? at : -1;
  }
};

/// Reads a panel [num_features x count], features slowest, in R's layout.
template <class T>
void start_turn(const T* panel, const PanelRows& to, cudaStream_t stream);

/// Rows as they were read, row-major. Device memory.
struct RowsAsRead {
  const double* rows = nullptr;
  std::int64_t stride = 0;            ///< distance between rows
  const std::int32_t* ids = nullptr;  ///< [count] their numbers; null: the
                                      ///< first ones
  /// [num_features] the features of each, in any order; null: the first ones.
  const std::int32_t* features = nullptr;
};

/// Copies the panel's rows from there.
void start_copy(const RowsAsRead& from, const PanelRows& to,
                cudaStream_t stream);

/// The small matrix from which metafeatures are computed. Device memory.
struct SmallMatrix {
  MetafeatureOrder order;
  const double* rows = nullptr;  ///< [.. x stride], row-major
  std::int64_t stride = 0;
  const std::int32_t* kept = nullptr;  ///< as MetafeatureSource::kept()
};

/// Computes points `ids` (device, [count]; null: first, first + 1, ...).
void start_make(const SmallMatrix& small, const std::int32_t* ids,
                std::int64_t first, const PanelRows& to, cudaStream_t stream);

/// Does what prepare_row() of core/contract/prepare.hpp does, except for the
/// ranks, on the rows of `at`, in place. The recipe's weights and covariates
/// are device memory. Sets *beyond (device) if the recipe needs sums and one is
/// not positive.
void start_prepare(const RowRecipe& recipe, const PanelRows& at,
                   std::int32_t* beyond, cudaStream_t stream);

/// Computes AverageRanks (core/contract/row_scratch.hpp) of rows in place.
class Ranker {
 public:
  /// For panels of at most most_rows rows.
  Ranker(std::int64_t most_rows, std::int64_t num_features);
  void start(const PanelRows& at, cudaStream_t stream);

 private:
  const SortShape shape_;
  DeviceBuffer<double> values_;        ///< [shape_.rows x shape_.width]
  DeviceBuffer<std::int32_t> origin_;  ///< the same: the feature of each value
};

}  // namespace cuda
}  // namespace fsknn
