#pragma once

// The forms in which a filter may keep rows: one table, which the plan, what is
// asked of a device and the kernels' tiles all read. Another precision is a
// line here, a type of rows, a kernel and a bound (cuda/filter). Plain C++.

#include <cmath>
#include <cstdint>

#include "core/base/filter_numbers.hpp"
#include "core/contract/metric.hpp"
#include "cuda/plan/gpu_facts.hpp"

namespace fsknn {
namespace cuda {

enum class NumberForm {
  none,  ///< no filter: every pair in doubles
  byte,  ///< whole numbers of 8 bits, whose products tensor cores add up
  half,  ///< half-precision floats, the same
  bit,   ///< a bit a feature, of rows of 0 and 1; tensor cores count
  code,  ///< the same of small whole numbers, as many bits as the largest
  byte_difference,  ///< whole numbers of 8 bits, whose differences are added up
  word_difference,  ///< the same of 16 bits
  single            ///< the same of single-precision floats
};

/// A set of the filters that metrics declare.
constexpr unsigned one_filter(FilterKind kind) {
  return 1u << static_cast<unsigned>(kind);
}

struct NumberFormEntry {
  NumberForm form;
  FilterNumbers numbers;       ///< by which it is reported and asked for
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
  /// Where a pair's bound is wide: see FilterRounds.
  int settled_rounds = 0;
};

/// In the order in which they are preferred: choose_filter() takes the first
/// that serves, of which choose_filter.cpp knows more than stands here.
inline constexpr NumberFormEntry kNumberForms[] = {
    {NumberForm::code, FilterNumbers::codes,
     "common bits of small whole numbers by tensor cores, or differences of "
     "wider numbers",
     one_filter(FilterKind::product) | one_filter(FilterKind::difference) |
         one_filter(FilterKind::overlap),
     2, 16, 64, 1, 3, false, 32768, 80, 61440},
    {NumberForm::byte, FilterNumbers::int8,
     "products of bytes, or of half-precision floats where these leave fewer "
     "pairs, by tensor cores",
     one_filter(FilterKind::product), 1, 1, 32, 1, 2, false, 16384, 75, 61440,
     4},
    {NumberForm::byte_difference, FilterNumbers::int8,
     "differences of bytes, or of wider numbers where these leave fewer pairs",
     one_filter(FilterKind::difference) | one_filter(FilterKind::overlap), 1, 1,
     16, 4, 3, false, 32768, 80, 45056, 3},
    {NumberForm::word_difference, FilterNumbers::int16,
     "differences of 16-bit whole numbers, or of single-precision floats where "
     "these leave fewer pairs",
     one_filter(FilterKind::difference) | one_filter(FilterKind::largest) |
         one_filter(FilterKind::overlap),
     2, 1, 8, 8, 4, false, 32768, 90, 45056},
    {NumberForm::half, FilterNumbers::float16,
     "products of half-precision floats by tensor cores",
     one_filter(FilterKind::product), 2, 1, 64, 1, 2, true, 262144, 75, 61440},
    {NumberForm::bit, FilterNumbers::bits, "common bits by tensor cores",
     one_filter(FilterKind::bits), 2, 16, 64, 1, 1, false, 524288, 80, 61440},
    {NumberForm::single, FilterNumbers::float32,
     "differences of single-precision floats",
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

/// Squared differences, which of 0 and 1 are differences.
inline bool has_squares(const MetricEntry& metric) {
  return metric.accumulation == Accumulation::squared_difference;
}

/// Halves' places, of 16 bits, of a row whose values take `bits` each: those of
/// 32 features stand in so many words.
std::int64_t depth_of_codes(std::int64_t num_features, int bits);

/// What two rows have in common may be no more: see bit_bound.hpp.
static constexpr std::int64_t kMostCommon = std::int64_t{1} << 20;

/// Lists of more neighbours are not settled: a warp has an entry a lane.
static constexpr std::int64_t kMostSettled = 32;

/// Bytes leave a row more candidates than halves do, each of which costs as
/// much as so many products of features save. By times at 220,000 and 384,126
/// rows of 295 features (simulated, 64 factors) bytes and halves take as long
/// for about 240,000, where 36 candidates are expected of k = 20; and where
/// lists are not settled for about 1.2 million and 69, when thresholds were not
/// guessed (an H200).
constexpr double byte_candidate_cost(std::int64_t k) {
  return k <= kMostSettled ? 5.0e6 : 7.5e6;
}
/// Where warps multiply rather than Hopper's warpgroups it is less by as much
/// as halves take longer, 0.0159 s rather than 0.0111 at n = 100,000 (an H100
/// whose code was made to be that of other GPUs; an H200). What bytes take by
/// warps was not measured: twice as many products a second are assumed.
static constexpr double kByWarps = 0.0111 / 0.0159;

/// Of such devices; infinite where it is not known. NVIDIA gave the data-centre
/// GPUs of compute capability 10 and 11 other products, which are not used
/// here, and what products of bytes take by warps differs among them.
inline double byte_candidate_cost(const GpuFacts& gpus, std::int64_t k) {
  constexpr int hopper = 90;
  if (gpus.capability == hopper && gpus.most_capability == hopper &&
      gpus.hopper_code)
    return byte_candidate_cost(k);
  return gpus.most_capability >= 100 && gpus.capability < 120
             ? HUGE_VAL
             : kByWarps * byte_candidate_cost(k);
}

/// Of rows of bytes, features that hold a row's error: for each side so many.
constexpr std::int64_t error_parts(std::int64_t num_features) {
  return 2 + (num_features + 127) / 128;
}

/// Of a feature in the form; 0: there is none.
constexpr int bits_of(NumberForm form) {
  return form == NumberForm::none ? 0 : bits_of(entry_of(form).numbers);
}

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
  /// unit: of length 1, for products. Of all forms but codes.
  RowsInForm(NumberForm number_form, bool unit, std::int64_t num_features);

  NumberForm form = NumberForm::none;
  std::int64_t features = 0;       ///< of the points
  int sides = 1;                   ///< rows of a slot
  std::int64_t depth = 0;          ///< numbers of a row
  std::int64_t row_bytes = 0;      ///< of a slot's
  std::int64_t floats_a_slot = 0;  ///< besides
  std::int64_t work = 0;           ///< for a pair, in features of halves
  double bytes_sums = 0;  ///< of a multiprocessor, for sums over stretches

  bool unit = false;     ///< rows of length 1
  bool centred = false;  ///< and what is left of them beside a centre
  /// There is room for centred rows, which a search may find better.
  bool may_centre = false;
  std::int64_t spare_bytes = 0;  ///< of a slot's, for those

  /// Whether the same may be learnt, and take their place.
  bool operator==(const RowsInForm& other) const {
    return form == other.form && features == other.features &&
           unit == other.unit && centred == other.centred &&
           may_centre == other.may_centre && instead == other.instead;
  }

  /// With that room, where there is such a form of these rows; or as it is.
  RowsInForm with_room_to_centre() const;

  /// Of codes, the form of points that are no small whole numbers.
  NumberForm instead = NumberForm::single;
  static RowsInForm codes(std::int64_t num_features, NumberForm instead,
                          bool unit = false);

  /// The form of points that this one does not suit, or not well; of
  /// NumberForm::none, where it suits all.
  RowsInForm otherwise() const;

  /// Of codes, the most bits that a feature may take.
  int most_code_bits() const;

  /// The filter in words, and by the name of its numbers.
  const char* words() const;
  FilterNumbers numbers() const {
    return form == NumberForm::none ? FilterNumbers::none
           : centred                ? FilterNumbers::float16_centred
                                    : entry_of(form).numbers;
  }

  /// Of a slot, whole.
  std::int64_t slot_bytes() const {
    return row_bytes + spare_bytes + 4 * floats_a_slot;
  }
};

/// Throws std::logic_error where a metric accumulates what nobody knows, where
/// its sign is none (kernels tell signs by comparisons), or where it declares a
/// filter that has no bound for what it accumulates: before anything is done
/// with it. FilterKind::none suits every metric.
void check_metric(const MetricEntry& metric);

}  // namespace cuda
}  // namespace fsknn
