#pragma once

// The numbers that a filter keeps rows in, by the names under which they are
// reported, asked for and tested. What is done with them, products or
// differences, is the metric's.

#include <cstring>

#include "core/base/kinds.hpp"

namespace fsknn {

/// By their width.
enum class FilterNumbers {
  none,   ///< there is no filter
  bits,   ///< a bit a feature
  codes,  ///< small whole numbers, as many bits a feature as the largest
  int8,
  int8_centred,  ///< of what is left of rows beside a centre
  int16,
  int16_centred,
  float16,
  float16_centred,
  float32
};

struct FilterNumbersEntry {
  FilterNumbers numbers;
  const char* name;
  int bits;  ///< of a number
};

inline constexpr FilterNumbersEntry kFilterNumbers[] = {
    {FilterNumbers::none, "none", 0},
    {FilterNumbers::bits, "bits", 1},
    {FilterNumbers::codes, "codes", 1},
    {FilterNumbers::int8, "int8", 8},
    {FilterNumbers::int8_centred, "int8_centred", 8},
    {FilterNumbers::int16, "int16", 16},
    {FilterNumbers::int16_centred, "int16_centred", 16},
    {FilterNumbers::float16, "float16", 16},
    {FilterNumbers::float16_centred, "float16_centred", 16},
    {FilterNumbers::float32, "float32", 32}};

constexpr const FilterNumbersEntry& entry_of(FilterNumbers numbers) {
  for (const FilterNumbersEntry& entry : kFilterNumbers)
    if (entry.numbers == numbers) return entry;
  throw_unknown("filter's numbers", static_cast<int>(numbers));
}
constexpr int bits_of(FilterNumbers numbers) { return entry_of(numbers).bits; }
constexpr const char* name_of(FilterNumbers numbers) {
  return entry_of(numbers).name;
}

/// Those of that name; none: there are none.
inline FilterNumbers numbers_named(const char* name) {
  for (const FilterNumbersEntry& entry : kFilterNumbers)
    if (std::strcmp(entry.name, name) == 0) return entry.numbers;
  return FilterNumbers::none;
}

/// Of two searches', the wider ones.
constexpr FilterNumbers wider(FilterNumbers a, FilterNumbers b) {
  return a < b ? b : a;
}

}  // namespace fsknn
