#pragma once

// The order in which points stand inside the work. Real data put near
// neighbours side by side; thresholds tighten evenly only when they do not, so
// points are shuffled. The shuffle is fixed, and the answer does not depend on
// it.

#include <cstdint>
#include <vector>

#include "core/base/numbers.hpp"

namespace fsknn {

struct PointOrder {
  /// id[p]: the point (0-based, as the user numbers them) at place p.
  std::vector<std::int32_t> id;
  /// place[i]: where point i stands; -1 for points left out.
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

/// All points but `skip` (ascending), shuffled, or in their own order.
PointOrder order_points(std::int64_t num_points,
                        const std::vector<std::int64_t>& skip, bool shuffle);

}  // namespace fsknn
