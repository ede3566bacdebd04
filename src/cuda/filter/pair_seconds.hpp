#pragma once

// Approximate times of pairs on a large GPU, for the choice of a form.

#include "core/contract/metric.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

// The time of a candidate, and of each of its features, in doubles from
// anywhere in memory; and of a feature where all pairs are computed.
static constexpr double kSecondsCandidate = 2e-10;
static constexpr double kSecondsExactFeature = 3.2e-12;
static constexpr double kSecondsDoubleFeature = 2e-13;

/// The time of a feature of a pair in the filter, measured with its kernels on
/// an H200.
constexpr double seconds_a_feature(NumberForm form, FilterKind kind) {
  const bool largest = kind == FilterKind::largest;
  switch (form) {
    case NumberForm::byte_difference: return 2.05e-14;
    case NumberForm::word_difference: return largest ? 7.7e-14 : 4.4e-14;
    default: return largest ? 9.1e-14 : 8.6e-14;
  }
}

}  // namespace cuda
}  // namespace fsknn
