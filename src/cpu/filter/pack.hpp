#pragma once

// Packs rows in the filter's form.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Packs prepared rows; fills everything except the numbers that complete()
/// fills. progress (may be null) is polled only for interrupts.
FilterRows pack(const FilterScale& scale, const PreparedPoints& points,
                int num_threads, Progress* progress = nullptr);

/// set_slack() sets the common slack, after all rows' errors are known.
/// complete() then fills the rows' numbers, and may do so again with another
/// slack.
void set_slack(FilterScale& scale, double error, std::int64_t padded);
void complete(const FilterScale& scale, FilterRows& rows);

/// Returns some completed rows in another order: row p is the row at
/// place_at[p]. Padding beyond them must not be compared.
FilterRows reordered(const FilterRows& from,
                     const std::vector<std::int32_t>& place_at,
                     int num_threads);

}  // namespace cpu
}  // namespace fsknn
