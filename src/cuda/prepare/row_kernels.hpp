#pragma once

// The kernels of stage "prepare": a panel of rows as they were read, put where
// they belong, and brought there into the form that pairs are computed from:
// row_kernels.cu, and ranks.cu for the ranks.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/rows/metafeatures.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {

/// Of a block that makes one row.
static constexpr int kMakeThreads = 128;

/// A panel's rows and where each of them goes. All pointers are device memory.
struct PanelRows {
  std::int64_t count = 0;  ///< rows of the panel
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< a multiple of 8
  /// [count] the row of `rows` that each goes to, before `first_place` is taken
  /// off; what is not in [first_place, first_place + num_places) goes nowhere.
  /// Null: they go to rows 0, 1, ...
  const std::int32_t* places = nullptr;
  std::int64_t first_place = 0, num_places = 0;
  double* rows = nullptr;  ///< [.. x padded], row-major
  double* sums = nullptr;  ///< [..]; may be null

  /// The row that the panel's row r goes to; -1: none.
  FSKNN_HD std::int64_t target(std::int64_t r) const {
    if (r >= count) return -1;
    if (places == nullptr) return r;
    const std::int64_t at = places[r] - first_place;
    return places[r] >= 0 && at >= 0 && at < num_places ? at : -1;
  }
};

/// From a panel [num_features x count], features slowest, as R holds a matrix.
template <class T>
void start_turn(const T* panel, const PanelRows& to, cudaStream_t stream);

/// Rows as they were read, row-major. Device memory.
struct RowsAsRead {
  const double* rows = nullptr;
  std::int64_t stride = 0;            ///< from one to the next
  const std::int32_t* ids = nullptr;  ///< [count] which; null: the first ones
  /// [num_features] which of each, in any order; null: the first ones.
  const std::int32_t* features = nullptr;
};

/// The panel's rows from there.
void start_copy(const RowsAsRead& from, const PanelRows& to,
                cudaStream_t stream);

/// The small matrix that metafeatures are made of. Device memory.
struct SmallMatrix {
  MetafeatureOrder order;
  const double* rows = nullptr;  ///< [.. x stride], row-major
  std::int64_t stride = 0;
  const std::int32_t* kept = nullptr;  ///< as MetafeatureSource::kept()
};

/// Makes points `ids` (device, [count]; null: first, first + 1, ...).
void start_make(const SmallMatrix& small, const std::int32_t* ids,
                std::int64_t first, const PanelRows& to, cudaStream_t stream);

/// prepare_row() of core/contract/prepare.hpp but for the ranks: the rows that
/// `at` says, in place. The recipe's weights and covariates are device memory.
/// Sets *beyond (device) where the recipe needs sums and one is not above 0.
void start_prepare(const RowRecipe& recipe, const PanelRows& at,
                   std::int32_t* beyond, cudaStream_t stream);

/// AverageRanks (core/contract/row_scratch.hpp) of rows in place.
class Ranker {
 public:
  /// For panels of at most most_rows rows.
  Ranker(std::int64_t most_rows, std::int64_t num_features);
  void start(const PanelRows& at, cudaStream_t stream);

 private:
  const SortShape shape_;
  DeviceBuffer<double> values_;        ///< [shape_.rows x shape_.width]
  DeviceBuffer<std::int32_t> origin_;  ///< the same: the feature of each
};

}  // namespace cuda
}  // namespace fsknn
