#pragma once

// The forms in which a filter may keep rows: one table, which the plan, what is
// asked of a device and the kernels' tiles all read. Another precision is a
// line here, a type of rows, a kernel and a bound (cuda/filter). Plain C++.

#include <cstdint>

#include "core/metrics.hpp"
#include "cuda/plan/gpu_facts.hpp"

namespace fsknn {
namespace cuda {

enum class NumberForm {
  none,   ///< no filter: every pair in doubles
  half,   ///< half-precision floats, whose products tensor cores add up
  bit,    ///< a bit a feature, of rows of 0 and 1; tensor cores count
  single  ///< single-precision floats, whose differences are added up
};

/// A set of the filters that metrics declare.
constexpr unsigned one_filter(FilterKind kind) {
  return 1u << static_cast<unsigned>(kind);
}

struct NumberFormEntry {
  NumberForm form;
  const char* name;            ///< of its filter, in words
  unsigned serves;             ///< one_filter() of each, together
  std::int64_t bytes;          ///< of a number
  std::int64_t features;       ///< that a number holds
  std::int64_t step;           ///< a row is a multiple of so many numbers
  std::int64_t work;           ///< what a number takes, in halves
  std::int64_t floats_a_slot;  ///< kept of a row besides
  /// Tensor cores lose more the longer they add: see has_stretches().
  bool in_stretches;
  /// Beyond, the filter's error nears what it is to tell apart.
  std::int64_t most_features;
  int least_capability;       ///< of a device, 10 * major + minor
  std::int64_t shared_bytes;  ///< that a block of threads must have there
};

/// In the order in which a plan takes them: the first that serves.
inline constexpr NumberFormEntry kNumberForms[] = {
    {NumberForm::half, "products of half-precision floats by tensor cores",
     one_filter(FilterKind::product), 2, 1, 64, 1, 2, true, 262144, 75, 61440},
    {NumberForm::bit, "common bits by tensor cores",
     one_filter(FilterKind::bits), 2, 16, 64, 1, 1, false, 524288, 80, 61440},
    {NumberForm::single, "differences of single-precision floats",
     one_filter(FilterKind::difference) | one_filter(FilterKind::largest) |
         one_filter(FilterKind::overlap) | one_filter(FilterKind::bits),
     4, 1, kLanes, 16, 3, false, 32768, 0, 45056},
};

/// The form's entry; there is none of NumberForm::none.
constexpr const NumberFormEntry& entry_of(NumberForm form) {
  for (const NumberFormEntry& entry : kNumberForms)
    if (entry.form == form) return entry;
  throw_unknown("number form", static_cast<int>(form));
}

/// The form in which such devices filter a metric that declares this; none: not
/// at all.
NumberForm choose_form(FilterKind filter, std::int64_t num_features,
                       const GpuFacts& gpus);

/// Tensor cores lose more the longer they add. Of rows of many features they
/// add up so many at a time, a stretch, and floats the stretches, which takes
/// some time: it pays where more than kMostInOne features are added.
static constexpr std::int64_t kFilterStretch = 1024, kMostInOne = 2048;
inline bool has_stretches(std::int64_t depth) { return depth > kMostInOne; }
/// Bytes of a block of threads for the sums of the stretches before.
static constexpr std::int64_t kStretchBytes = 128 * 1024;

/// By products, raw rows have features more: their norms, in parts. The sides
/// of a pair differ in them, and a slot has a row for each.
static constexpr std::int64_t kNormFeatures = 6;

/// A row in such a form.
struct RowsInForm {
  RowsInForm() = default;
  /// unit: of length 1, for products.
  RowsInForm(NumberForm number_form, bool unit, std::int64_t num_features);

  NumberForm form = NumberForm::none;
  std::int64_t features = 0;       ///< of the points
  int sides = 1;                   ///< rows of a slot
  std::int64_t depth = 0;          ///< numbers of a row
  std::int64_t row_bytes = 0;      ///< of a slot's
  std::int64_t floats_a_slot = 0;  ///< besides
  std::int64_t work = 0;           ///< for a pair, in features of halves
  double bytes_sums = 0;  ///< of a multiprocessor, for sums over stretches

  /// Of a slot, whole.
  std::int64_t slot_bytes() const { return row_bytes + 4 * floats_a_slot; }
};

/// Throws std::logic_error where a metric accumulates what nobody knows, where
/// its sign is none (kernels tell signs by comparisons), or where it declares a
/// filter that has no bound for what it accumulates: before anything is done
/// with it. FilterKind::none suits every metric.
void check_metric(const MetricEntry& metric);

}  // namespace cuda
}  // namespace fsknn
