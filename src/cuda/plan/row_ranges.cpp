#include "cuda/plan/row_ranges.hpp"

#include <algorithm>

namespace fsknn {
namespace cuda {
namespace {

// Jobs in a launch for each multiprocessor, so many that little time is lost at
// the end.
constexpr std::int64_t kJobsEach = 12;
// Longer jobs save little more.
constexpr std::int64_t kLongestSpan = 8;

}  // namespace

std::vector<RowRangeLaunch> schedule_row_range(const RowRangeShape& shape) {
  std::vector<RowRangeLaunch> launches;
  std::int64_t round_end = std::min(shape.fill_blocks, shape.num_blocks);
  for (std::int64_t first = 0; first < shape.num_blocks;) {
    RowRangeLaunch launch;
    launch.row_blocks = shape.row_blocks;
    launch.first_block = first;
    const std::int64_t panel_end =
        (first / shape.panel_blocks + 1) * shape.panel_blocks;
    launch.end_block = std::min(round_end, panel_end);
    launch.fill = first < shape.fill_blocks;
    launch.ends_round = launch.end_block == round_end;
    // Jobs are of slabs, two to a block.
    const std::int64_t slabs =
        2 * shape.row_blocks * (launch.end_block - launch.first_block);
    launch.span = std::max<std::int64_t>(
        1, std::min(kLongestSpan, slabs / (kJobsEach * shape.multiprocessors)));
    launches.push_back(launch);
    first = launch.end_block;
    if (launch.ends_round)
      round_end = std::min(2 * round_end, shape.num_blocks);
  }
  return launches;
}

}  // namespace cuda
}  // namespace fsknn
