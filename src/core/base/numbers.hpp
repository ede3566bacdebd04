#pragma once

// Integers of different kinds that are easily confused have distinct types in
// interfaces. Inside loops they are plain integers. A table in CONTRIBUTING.md
// says who makes which.

#include <cstdint>

namespace fsknn {

/// A point, or a query, from 0 in the user's order.
struct PointId {
  std::int32_t value;
};

/// The place of a point in an order of the points of a search: shuffled for a
/// filter, and in the user's order if points come in panels (its panel place).
struct Place {
  std::int64_t value;
  /// True for a point that is left out.
  bool none() const { return value < 0; }
};

/// A row of the answer, from 0: a point of a graph, a query, or one of a
/// subset.
struct AnswerRow {
  std::int32_t value;
  static AnswerRow of(std::int64_t row) {
    return {static_cast<std::int32_t>(row)};
  }
};

/// The position of a point in the blocks of a GPU's filter. Some are empty.
struct Slot {
  std::int64_t value;
};

/// The rank of a neighbour in its row's list, from 0: the nearest comes first.
struct Rank {
  std::int64_t value;
};

inline bool operator==(PointId a, PointId b) { return a.value == b.value; }
inline bool operator==(Place a, Place b) { return a.value == b.value; }
inline bool operator==(AnswerRow a, AnswerRow b) { return a.value == b.value; }

}  // namespace fsknn
