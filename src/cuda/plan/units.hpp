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

}  // namespace cuda
}  // namespace fsknn
