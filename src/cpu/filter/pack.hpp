#pragma once

// Rows packed in the filter's form.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Packs prepared rows; fills all but what complete() fills. progress (may be
/// null) is only asked whether to go on.
FilterRows pack(const FilterScale& scale, const PreparedPoints& points,
                int num_threads, Progress* progress = nullptr);

/// The common slack, once all rows' errors are known; and with it the rows'
/// numbers, which may be completed anew with another slack.
void set_slack(FilterScale& scale, double error, std::int64_t padded);
void complete(const FilterScale& scale, FilterRows& rows);

/// Completed rows, some of them, in another order: what stands at place_at[p]
/// comes to p. What stands beyond is never to be met.
FilterRows reordered(const FilterRows& from,
                     const std::vector<std::int32_t>& place_at,
                     int num_threads);

}  // namespace cpu
}  // namespace fsknn
