#pragma once

// Whether values are small whole numbers, which engines may keep as
// thermometer codes: bit t of a value is set where it is above t, so that what
// two values have in common is the smaller one. (Vignette "proofs".)

#include <cstdint>

namespace fsknn {

/// The largest of x [size] where each is a whole number from 0 to `most`; -1:
/// they are not.
std::int32_t largest_whole(const double* x, std::int64_t size,
                           std::int32_t most, int num_threads);

}  // namespace fsknn
