#pragma once

// Correlations of pairs that are named, where no search is needed.

#include "core/base/progress.hpp"
#include "core/search/contrast.hpp"
#include "cpu/search/outside.hpp"

namespace fsknn {
namespace cpu {

/// out: [rows x k] as `pairs`, the signed r of each row's point with each point
/// of its list, as a search gives it; `missing` where there is none, or where
/// either was left out.
void pair_correlations(const ExactPoints& exact, const ListMatrix& pairs,
                       int num_threads, Progress* progress, double missing,
                       double* out);

}  // namespace cpu
}  // namespace fsknn
