#include "core/rows/order.hpp"

#include <utility>

#include "core/rows/split_mix.hpp"

namespace fsknn {

PointOrder order_points(std::int64_t num_points,
                        const std::vector<std::int64_t>& skip, bool shuffle) {
  PointOrder order;
  order.place.assign(static_cast<std::size_t>(num_points), -1);
  order.id.reserve(static_cast<std::size_t>(num_points));
  std::size_t next_skip = 0;
  for (std::int64_t i = 0; i < num_points; ++i) {
    if (next_skip < skip.size() && skip[next_skip] == i) {
      ++next_skip;
      continue;
    }
    order.id.push_back(static_cast<std::int32_t>(i));
  }
  if (shuffle) {
    SplitMix random(20120001);
    for (std::size_t p = order.id.size(); p > 1; --p) {
      const std::size_t q = random.below(static_cast<std::uint32_t>(p));
      std::swap(order.id[p - 1], order.id[q]);
    }
  }
  for (std::size_t p = 0; p < order.id.size(); ++p)
    order.place[static_cast<std::size_t>(order.id[p])] =
        static_cast<std::int32_t>(p);
  return order;
}

}  // namespace fsknn
