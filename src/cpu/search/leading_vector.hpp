#pragma once

// The leading right singular vector of a matrix, and its products with the
// rows.

#include <cstdint>

#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// The first `count` rows of a matrix, also with features as rows. Both are
/// padded with zeros.
struct FirstRows {
  const double* rows;  ///< [.. x padded]
  std::int64_t padded;
  const double* features;  ///< [num_features x width]
  std::int64_t width;
  std::int64_t num_features, count;
};

/// out: [count], the product of each row with the leading right singular vector
/// of these rows. Its sign is arbitrary. At least one row is not zero.
void leading_loadings(const Kernels& kernels, const FirstRows& matrix,
                      double* out);

}  // namespace cpu
}  // namespace fsknn
