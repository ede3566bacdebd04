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

/// Where a point stands inside the work: among those that take part, shuffled.
struct Place {
  std::int64_t value;
  /// A point that is left out has none.
  bool none() const { return value < 0; }
};

/// A row of the answer, from 0: a point of a graph, a query, or one of a
/// subset.
struct AnswerRow {
  std::int32_t value;
};

inline bool operator==(PointId a, PointId b) { return a.value == b.value; }
inline bool operator==(Place a, Place b) { return a.value == b.value; }
inline bool operator==(AnswerRow a, AnswerRow b) { return a.value == b.value; }

}  // namespace fsknn
