#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

std::vector<std::int32_t> FilterBlocks::places() const {
  std::vector<std::int32_t> places(static_cast<std::size_t>(num_slots()), -1);
  for (std::int64_t block = 0; block < count; ++block) {
    const std::int64_t first = first_place(block).value;
    const std::int64_t end = first_place(block + 1).value;
    for (std::int64_t p = first; p < end; ++p)
      places[static_cast<std::size_t>(first_slot(block).value + p - first)] =
          static_cast<std::int32_t>(p);
  }
  return places;
}

}  // namespace cuda
}  // namespace fsknn
