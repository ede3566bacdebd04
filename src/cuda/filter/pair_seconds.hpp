#pragma once

// About how long pairs take on a large GPU, by which forms are chosen.

#include "core/metrics.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

// Of a candidate, and of each of its features, in doubles from wherever its row
// stands; and of a feature where all pairs are.
static constexpr double kSecondsCandidate = 2e-10;
static constexpr double kSecondsExactFeature = 3.2e-12;
static constexpr double kSecondsDoubleFeature = 2e-13;

/// Of a feature of a pair in the filter.
constexpr double seconds_a_feature(NumberForm form, FilterKind kind) {
  switch (form) {
    case NumberForm::byte_difference: return 2.1e-14;
    case NumberForm::word_difference: return 5e-14;
    default: return kind == FilterKind::largest ? 9.2e-14 : 9e-14;
  }
}

}  // namespace cuda
}  // namespace fsknn
