#pragma once

// Rows that are not stored. A source computes them when they are read, from
// much smaller data, and a device computes the same rows in its own memory
// (cuda/prepare/row_makers). A third such source needs one class here and one
// maker there.

#include <cstdint>
#include <vector>

#include "core/rows/source.hpp"

namespace fsknn {

class MadeSource : public RowSource {
 public:
  bool made_when_read() const final { return true; }
  MadeFrom made_from() const final { return {this, nullptr}; }
  /// Bytes that a device needs to make the rows, besides kept().
  virtual double bytes_to_make() const = 0;
  /// [num_points()] the number of each point among the rows that can be made;
  /// null: its own number.
  virtual const std::int32_t* kept() const = 0;
};

/// Bytes that a device needs to make a source's rows; 0: it makes none.
inline double bytes_made_from(const RowSource& source) {
  const MadeFrom from = source.made_from();
  if (from.source == nullptr) return 0;
  const bool numbered =
      from.numbers != nullptr || from.source->kept() != nullptr;
  return from.source->bytes_to_make() +
         (numbered ? 4 * static_cast<double>(source.num_points()) : 0.0);
}

/// [num_points] the number of each point among the rows that can be made;
/// empty: its own number.
inline std::vector<std::int32_t> numbers_made(const MadeFrom& from,
                                              std::int64_t num_points) {
  const std::int32_t* const kept = from.source->kept();
  if (from.numbers == nullptr && kept == nullptr) return {};
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(num_points));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t at =
        from.numbers == nullptr ? i : static_cast<std::size_t>(from.numbers[i]);
    numbers[i] = kept == nullptr ? static_cast<std::int32_t>(at) : kept[at];
  }
  return numbers;
}

}  // namespace fsknn
