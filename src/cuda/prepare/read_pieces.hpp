#pragma once

// The parts of a source that are sent to a device at a time, and their copying
// by the host. Plain C++.

#include <cstdint>
#include <cstring>

#include "core/base/numbers.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cuda {

/// Some points of a source: a range, or those of a list.
struct Points {
  PointId first = {0};
  std::int64_t count = 0;
  const std::int32_t* ids = nullptr;  ///< [count]; null: first, first + 1, ...
};

/// One piece of a panel, or a part of it: rows row0 .. of the requested points,
/// features first_feature .. end_feature - 1.
struct Piece {
  std::int64_t row0, num_rows;
  std::int64_t first_feature, end_feature;
};

/// Returns the begin of part `part` of `num_parts` even parts of [first, end).
inline std::int64_t part_begin(std::int64_t first, std::int64_t end,
                               std::int64_t part, std::int64_t num_parts) {
  return first + (end - first) * part / num_parts;
}

/// Copies to [features x num_rows].
template <class T>
void copy_columns(const MatrixSource<T>& source, const Points& points,
                  const Piece& piece, std::int64_t panel_feature0, T* to) {
  const std::int64_t n = source.num_points();
  for (std::int64_t f = piece.first_feature; f < piece.end_feature; ++f) {
    const T* column = source.values() + f * n;
    T* out = to + (f - panel_feature0) * piece.num_rows;
    if (points.ids == nullptr) {
      std::memcpy(out, column + points.first.value + piece.row0,
                  static_cast<std::size_t>(piece.num_rows) * sizeof(T));
      continue;
    }
    for (std::int64_t r = 0; r < piece.num_rows; ++r)
      out[r] = column[points.ids[piece.row0 + r]];
  }
}

/// Copies rows first_row .. end_row - 1 of a panel to [rows x features].
inline void copy_rows(const RowSource& source, const Points& points,
                      std::int64_t panel_row0, std::int64_t first_row,
                      std::int64_t end_row, double* to) {
  const std::int64_t d = source.num_features();
  if (points.ids == nullptr) {
    if (end_row > first_row)
      source.read(points.first.value + panel_row0 + first_row,
                  end_row - first_row, to + first_row * d, d);
    return;
  }
  for (std::int64_t r = first_row; r < end_row; ++r)
    source.read(points.ids[panel_row0 + r], 1, to + r * d, d);
}

}  // namespace cuda
}  // namespace fsknn
