#pragma once

// The headers that kernels_*.cpp need. They are included before the instruction
// set changes, so that library templates are not compiled for a processor that
// may be absent.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {
inline float as_float(std::int32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline std::int32_t as_bits(float x) {
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
}  // namespace cpu
}  // namespace fsknn
