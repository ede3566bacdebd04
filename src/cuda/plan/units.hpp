#pragma once

// What a device's work is made of, and whole numbers of it.

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

/// Rows that `count` of them take, in whole tiles of the distance kernel.
inline std::int64_t whole_tiles(std::int64_t count) {
  return round_up(count, kChunkUnit);
}

/// Where memory of another device cannot be read, lists are copied so many
/// bytes at a time.
static constexpr std::int64_t kStagedBytes = std::int64_t{16} << 20;

/// How much of something, each of so many features in double, takes less than
/// 0.1 s on a large GPU: the user's wish to stop is heard after each turn.
inline std::int64_t turn_of(double features) {
  return 1024 + static_cast<std::int64_t>(5e10 / features);
}

/// Rows of columns that a job of a filter meets, where nothing else is asked.
static constexpr std::int64_t kChunkMet = 16384;

/// Lists of candidates of queries, or of groups that meet, take so many bytes
/// at a time, or less.
static constexpr std::int64_t kListBytes = std::int64_t{1} << 30;

}  // namespace cuda
}  // namespace fsknn
