#pragma once

// Detects small integers, which engines may hold as thermometer codes: bit t of
// a value is set if the value exceeds t. The common bits of two values are then
// the smaller value. (Vignette "proofs".)

#include <cstdint>

namespace fsknn {

/// The largest of x [size] if each is an integer from 0 to `most`, else -1.
std::int32_t largest_whole(const double* x, std::int64_t size,
                           std::int32_t most, int num_threads);

}  // namespace fsknn
