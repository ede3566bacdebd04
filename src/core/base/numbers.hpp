#pragma once

// Kinds of whole numbers that are easily taken for each other, as types that
// are not: for interfaces. Inside a loop they are what they hold.
// CONTRIBUTING.md has a table of who makes which.

#include <cstdint>

namespace fsknn {

/// A point, from 0, as the user numbers points (or queries).
struct PointId {
  std::int32_t value;
};

/// Where a point stands in an order of those that take part: shuffled for a
/// filter, and in their own order where panels bring them (its panel place).
struct Place {
  std::int64_t value;
  /// A point that is left out has none.
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

/// Where a point stands in the blocks of a GPU's filter. Some slots hold none.
struct Slot {
  std::int64_t value;
};

/// Of a neighbour in its row's list, from 0: the nearest comes first.
struct Rank {
  std::int64_t value;
};

inline bool operator==(PointId a, PointId b) { return a.value == b.value; }
inline bool operator==(Place a, Place b) { return a.value == b.value; }
inline bool operator==(AnswerRow a, AnswerRow b) { return a.value == b.value; }

}  // namespace fsknn
