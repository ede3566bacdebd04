#pragma once

#include <cstdint>

#include "core/contract/scaling.hpp"

namespace fsknn {

/// The number at position `counter` (from 0) of the sequence of SplitMix(seed).
FSKNN_HD static inline std::uint64_t mixed_number(std::uint64_t seed,
                                                  std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// SplitMix64 (Steele, Lea, Flood 2014), with the same numbers on every
/// platform.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t z = mixed_number(state_, 0);
    state_ += 0x9e3779b97f4a7c15u;
    return z;
  }
  /// Below `bound`; the small bias is harmless here.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace fsknn
