#pragma once

// Correlations of listed pairs, where no search is needed.

#include "core/base/progress.hpp"
#include "core/search/contrast.hpp"
#include "cpu/search/outside.hpp"

namespace fsknn {
namespace cpu {

/// out: [rows x k] as `pairs`. It has the signed r of each row's point with
/// each point of its list, as a search gives it. It is `missing` where there is
/// no point, or where either was skipped.
void pair_correlations(const ExactPoints& exact, const ListMatrix& pairs,
                       int num_threads, Progress* progress, double missing,
                       double* out);

}  // namespace cpu
}  // namespace fsknn
