#pragma once

// How a range of rows is compared with all columns if the filter's rows are not
// on the device. Columns are streamed in panels of some blocks of slots. Plain
// C++, except for what kernels use.

#include <cstdint>
#include <vector>

#include "core/contract/scaling.hpp"
#include "cuda/plan/rounds.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

struct RowRangeShape {
  std::int64_t row_blocks = 0;
  std::int64_t num_blocks = 0;    ///< of columns
  std::int64_t panel_blocks = 1;  ///< of a panel of them
  std::int64_t fill_blocks = 1;   ///< that fill lists
  int multiprocessors = 1;
};

/// Compares all rows of the range with some blocks of one panel.
struct RowRangeLaunch {
  std::int64_t row_blocks = 0;
  std::int64_t first_block = 0, end_block = 0;  ///< of columns
  std::int64_t span = 1;                        ///< the most blocks of a job
  bool fill = false;
  bool ends_round = false;

  FSKNN_HD std::int64_t num_jobs() const {
    return row_blocks * ((end_block - first_block + span - 1) / span);
  }
  /// Rows are numbered from the range's first block, columns from the first of
  /// all.
  FSKNN_HD ListedJob job(std::int64_t at) const {
    const std::int64_t first = first_block + at / row_blocks * span;
    const std::int64_t end =
        first + span < end_block ? first + span : end_block;
    return {static_cast<std::int32_t>(at % row_blocks),
            static_cast<std::int32_t>(first), static_cast<std::int32_t>(first),
            static_cast<std::int32_t>(end)};
  }
};

/// The launches in order. The first blocks fill lists; then each round has as
/// many blocks as all before it.
std::vector<RowRangeLaunch> schedule_row_range(const RowRangeShape& shape);

}  // namespace cuda
}  // namespace fsknn
