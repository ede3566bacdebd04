#pragma once

// The number types of a filter's rows, by the names under which they are
// reported, requested and tested. The metric decides between products and
// differences of them.

#include <cstring>

#include "core/base/kinds.hpp"

namespace fsknn {

/// In order of their width.
enum class FilterNumbers {
  none,   ///< there is no filter
  bits,   ///< a bit per feature
  codes,  ///< small integers, with as many bits per feature as the largest
  int8,
  int8_centred,  ///< residuals of rows from a centre
  int16,
  int16_centred,
  float16,
  float16_centred,
  float32
};

struct FilterNumbersEntry {
  const char* name;
  FilterNumbers numbers;
  int bits;  ///< of a number
};

inline constexpr FilterNumbersEntry kFilterNumbers[] = {
    {"none", FilterNumbers::none, 0},
    {"bits", FilterNumbers::bits, 1},
    {"codes", FilterNumbers::codes, 1},
    {"int8", FilterNumbers::int8, 8},
    {"int8_centred", FilterNumbers::int8_centred, 8},
    {"int16", FilterNumbers::int16, 16},
    {"int16_centred", FilterNumbers::int16_centred, 16},
    {"float16", FilterNumbers::float16, 16},
    {"float16_centred", FilterNumbers::float16_centred, 16},
    {"float32", FilterNumbers::float32, 32}};

constexpr const FilterNumbersEntry& entry_of(FilterNumbers numbers) {
  for (const FilterNumbersEntry& entry : kFilterNumbers)
    if (entry.numbers == numbers) return entry;
  throw_unknown("filter's numbers", static_cast<int>(numbers));
}
constexpr int bits_of(FilterNumbers numbers) { return entry_of(numbers).bits; }
constexpr const char* name_of(FilterNumbers numbers) {
  return entry_of(numbers).name;
}

/// The numbers with that name; none if there are none.
inline FilterNumbers numbers_named(const char* name) {
  for (const FilterNumbersEntry& entry : kFilterNumbers)
    if (std::strcmp(entry.name, name) == 0) return entry.numbers;
  return FilterNumbers::none;
}

/// The wider of two searches' numbers.
constexpr FilterNumbers wider(FilterNumbers a, FilterNumbers b) {
  return a < b ? b : a;
}

}  // namespace fsknn
