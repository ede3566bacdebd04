#pragma once

// Connectivities of a weighted correlation network of all pairs: sums of powers
// of similarities, with no pair kept.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// The similarity of a correlation r: |r|, (1 + r) / 2, or r and 0 below 0.
enum class NetworkType { magnitude, both_signs, positive };

/// out: [num_points x powers], column-major: of each point the sum over all
/// others of their similarity to the power. A pair without a value counts 0; a
/// point that the request skips has `missing`. Sums are made in an order that
/// depends on the number of points alone. The metric is a correlation.
void connectivities(const Request& asked, NetworkType type,
                    const std::vector<double>& powers, const RowSource& points,
                    double missing, double* out, Progress* progress);

}  // namespace cpu
}  // namespace fsknn
