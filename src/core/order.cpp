#include "core/order.hpp"

#include <utility>

namespace fsknn {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere.
class SplitMix {
 public:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Below `bound`; the tiny bias does no harm here.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_ = 20120001;
};

}  // namespace

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
    SplitMix random;
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
