#pragma once

// A filtered graph whose doubles do not fit on a device.

#include <cstdint>

#include "cuda/plan/filter_shape.hpp"

namespace fsknn {
namespace cuda {

/// How a filtered graph is searched if its points do not fit on a device in
/// doubles. The filter's rows stay there, with short lists and rounds that grow
/// slowly; doubles are streamed in panels. If that does not fit either, the
/// filter's rows and the candidates are in the host's memory. Then lists cover
/// a range of the rows at a time, and all columns are streamed in panels. See
/// GraphByFilterPanels.
struct FilterStreaming {
  bool fits = false;
  std::int64_t row_range_blocks = 0;  ///< of a range; 0: the filter's rows stay
  std::int64_t panel_blocks = 0;      ///< of a panel of the filter's rows, then
  bool by_row_ranges() const { return row_range_blocks > 0; }
  std::int32_t capacity = 0;       ///< of the lists
  double growth = 1.5;             ///< of the rounds
  std::int64_t fill_blocks = 0;    ///< blocks of the first round
  std::int32_t fill_capacity = 0;  ///< of the first round's lists
  std::int64_t fill_slots = 0;     ///< slots that it fills at a time
  std::int64_t stream_rows = 0;    ///< points of a streamed panel
  std::int64_t redo_rows = 0;      ///< rows recomputed in doubles at a time
  std::int64_t write_rows = 0;     ///< rows written out at a time
  std::int64_t stay_rows = 0;      ///< approximate number of points that stay
  /// The number of rows prepared at a time; 0: as many as pinned pieces hold.
  std::int64_t prepare_rows = 0;
  double bytes_usable = 0;
  double bytes_fixed = 0;  ///< always held, without lists and rows
  double bytes_peak = 0;
  double bytes_host = 0;  ///< pinned, for all devices
};
FilterStreaming filter_streaming(const PlanInput& input,
                                 const FilterShape& shape, double bytes_usable);

/// The same by ranges of rows. multiprocessors: of a device.
FilterStreaming row_range_streaming(const PlanInput& input,
                                    const FilterShape& shape,
                                    double bytes_usable, int multiprocessors);

/// The most pairs of a point that can be ranked: each takes 12 bytes of a
/// block's memory.
static constexpr std::int32_t kMostRanked = 4096;

/// The bytes of a panel of the filter's rows. The columns of candidates are
/// written to this memory, too, some lists at a time.
inline std::int64_t row_range_panel_bytes(std::int64_t num_blocks,
                                          std::int64_t block_bytes) {
  const std::int64_t rows = num_blocks * block_bytes, list = 4 * kMostRanked;
  return rows > list ? rows : list;
}

/// The capacity of lists for rows of a range that overflowed.
inline std::int32_t wider_capacity(std::int32_t capacity) {
  const std::int32_t longer = 16 * capacity;
  return longer < kMostCandidates ? longer : kMostCandidates;
}

}  // namespace cuda
}  // namespace fsknn
