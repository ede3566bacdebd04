#pragma once

// The units of a device's work, and whole multiples of them.

#include <cstdint>

namespace fsknn {
namespace cuda {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
inline std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

/// A chunk is a multiple of this on a side: whole tiles of the distance kernel.
static constexpr std::int64_t kChunkUnit = 64;

/// The rows that `count` rows take in whole tiles of the distance kernel.
inline std::int64_t whole_tiles(std::int64_t count) {
  return round_up(count, kChunkUnit);
}

/// Where a device cannot read another's memory, lists are copied in parts of
/// this many bytes.
static constexpr std::int64_t kStagedBytes = std::int64_t{16} << 20;

/// The number of items, with that many features in double each, that take less
/// than 0.1 s on a large GPU. Interrupts are polled after each turn.
inline std::int64_t turn_of(double features) {
  return 1024 + static_cast<std::int64_t>(5e10 / features);
}

/// The number of columns that a job of a filter compares by default.
static constexpr std::int64_t kChunkMet = 16384;

/// The most bytes for lists of candidates at a time, for queries or for groups.
static constexpr std::int64_t kListBytes = std::int64_t{1} << 30;

}  // namespace cuda
}  // namespace fsknn
