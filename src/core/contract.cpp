// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/base/small_numbers.cpp"
#include "core/contract/covariates.cpp"
#include "core/contract/medians.cpp"
#include "core/contract/metrics.cpp"
#include "core/contract/pair_bins.cpp"
#include "core/contract/ranks.cpp"
#include "core/contract/value_range.cpp"
#include "core/contract/weights.cpp"
