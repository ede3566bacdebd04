#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

std::vector<std::int32_t> FilterBlocks::places() const {
  std::vector<std::int32_t> places(static_cast<std::size_t>(num_slots()), -1);
  for (std::int64_t block = 0; block < count; ++block)
    for (std::int64_t p = first(block); p < first(block + 1); ++p)
      places[static_cast<std::size_t>(block * kFilterBlock + p -
                                      first(block))] =
          static_cast<std::int32_t>(p);
  return places;
}

}  // namespace cuda
}  // namespace fsknn
