#pragma once

// The order of points within a search. In real data near neighbours are often
// adjacent, but thresholds tighten evenly only if they are not, so points are
// shuffled. The shuffle is fixed, and the answer does not depend on it.

#include <cstdint>
#include <vector>

#include "core/base/numbers.hpp"

namespace fsknn {

struct PointOrder {
  /// id[p]: the point (0-based, in the user's order) at place p.
  std::vector<std::int32_t> id;
  /// place[i]: the place of point i; -1 for points that are left out.
  std::vector<std::int32_t> place;
  PointId id_at(Place p) const {
    return {id[static_cast<std::size_t>(p.value)]};
  }
  Place place_of(PointId i) const {
    return {place[static_cast<std::size_t>(i.value)]};
  }
  std::int64_t num_active() const {
    return static_cast<std::int64_t>(id.size());
  }
};

/// Orders all points except `skip` (ascending), shuffled or in their own order.
PointOrder order_points(std::int64_t num_points,
                        const std::vector<std::int64_t>& skip, bool shuffle);

}  // namespace fsknn
