#pragma once

// A filtered graph whose doubles do not fit a device.

#include <cstdint>

#include "cuda/plan/filter_shape.hpp"

namespace fsknn {
namespace cuda {

/// How a filtered graph is searched where its points do not fit a device in
/// doubles: the filter's rows stay, with short lists, and rounds that grow
/// slowly; doubles come in panels. See GraphByFilterPanels.
struct FilterStreaming {
  bool fits = false;
  std::int32_t capacity = 0;       ///< of the lists
  double growth = 1.5;             ///< of the rounds
  std::int64_t fill_blocks = 0;    ///< of the first round,
  std::int32_t fill_capacity = 0;  ///< whose lists are longer,
  std::int64_t fill_slots = 0;     ///< of so many slots at a time
  std::int64_t stream_rows = 0;    ///< points of a panel that comes by
  std::int64_t redo_rows = 0;      ///< rows done in doubles at a time
  std::int64_t write_rows = 0;     ///< rows written out at a time
  std::int64_t stay_rows = 0;      ///< points that stay, about
  double bytes_usable = 0;
  double bytes_fixed = 0;  ///< held all the time, lists and rows apart
  double bytes_peak = 0;
};
FilterStreaming filter_streaming(const PlanInput& input,
                                 const FilterShape& shape, double bytes_usable);

}  // namespace cuda
}  // namespace fsknn
