#pragma once

// The forms in which a filter may store rows. The plan, the requirements on
// devices and the kernels' tiles all read this one table. Another precision
// needs an entry here, a type of rows, a kernel and a bound (cuda/filter).
// Plain C++.

#include <cmath>
#include <cstdint>

#include "core/base/filter_numbers.hpp"
#include "core/contract/metric.hpp"
#include "cuda/plan/gpu_facts.hpp"

namespace fsknn {
namespace cuda {

enum class NumberForm {
  none,    ///< no filter: every pair in doubles
  byte,    ///< whole numbers of 8 bits, whose products tensor cores sum
  half,    ///< half-precision floats, whose products tensor cores sum
  bit,     ///< a bit for each feature of rows of 0 and 1; tensor cores count
  allele,  ///< a bit for each allele that is 0 or 1
  allele_pair,  ///< counts of two alleles: a bit for each pair in a product
  code,         ///< bits of small whole numbers, as many as the largest value
  byte_difference,  ///< whole numbers of 8 bits, whose differences are summed
  word_difference,  ///< the same with 16 bits
  single            ///< the same with single-precision floats
};

/// A set of the filters that metrics declare.
constexpr unsigned one_filter(FilterKind kind) {
  return 1u << static_cast<unsigned>(kind);
}

struct NumberFormEntry {
  NumberForm form;
  FilterNumbers numbers;       ///< names it in reports and requests
  const char* name;            ///< of its filter, in words
  unsigned serves;             ///< one_filter() of all its filters
  std::int64_t bytes;          ///< of a number
  std::int64_t features;       ///< in a number
  std::int64_t step;           ///< a row's length is a multiple of this
  std::int64_t work;           ///< cost of a number, in halves
  std::int64_t floats_a_slot;  ///< further floats of a slot
  /// The error of tensor cores grows with the terms: see has_feature_ranges().
  bool in_feature_ranges;
  /// Beyond this the filter's error nears the differences between pairs.
  std::int64_t most_features;
  int least_capability;       ///< of a device, 10 * major + minor
  std::int64_t shared_bytes;  ///< that a block of threads must have there
  /// Above 0 if a pair's bound is wide: see FilterRounds.
  int reranked_rounds = 0;
};

/// The forms in the order of preference: choose_filter() takes the first that
/// serves, by further conditions in choose_filter.cpp.
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
    {NumberForm::allele, FilterNumbers::bits, "common alleles by tensor cores",
     one_filter(FilterKind::table), 2, 16, 64, 1, 6, false, 524288, 80, 61440},
    {NumberForm::allele_pair, FilterNumbers::bits,
     "common alleles by tensor cores", one_filter(FilterKind::table), 2, 16, 64,
     1, 6, false, 524288, 80, 61440},
    {NumberForm::single, FilterNumbers::float32,
     "differences of single-precision floats",
     one_filter(FilterKind::difference) | one_filter(FilterKind::largest) |
         one_filter(FilterKind::overlap) | one_filter(FilterKind::bits),
     4, 1, kLanes, 16, 3, false, 32768, 0, 45056},
};

/// The form's entry. NumberForm::none has none.
constexpr const NumberFormEntry& entry_of(NumberForm form) {
  for (const NumberFormEntry& entry : kNumberForms)
    if (entry.form == form) return entry;
  throw_unknown("number form", static_cast<int>(form));
}

/// Squared differences, which for 0 and 1 are differences.
inline bool has_squares(const MetricEntry& metric) {
  return metric.accumulation == Accumulation::squared_difference;
}

/// The number of 16-bit entries of a row whose values have `bits` bits each.
/// Codes of 32 features take that many 32-bit words.
std::int64_t depth_of_codes(std::int64_t num_features, int bits);

/// The most that two rows may have in common: see bit_bound.hpp.
static constexpr std::int64_t kMostCommon = std::int64_t{1} << 20;

/// Longer lists are not re-ranked exactly: each lane of a warp has one entry.
static constexpr std::int64_t kMostReranked = 32;

/// The cost of a candidate, in products of features. Bytes pass more candidates
/// than halves do. Both were timed at 220,000 and 384,126 rows of 295 features
/// (simulated, 64 factors). They take equal times at about 240,000 rows, where
/// 36 candidates are expected for k = 20. Without exact re-ranking this is at
/// about 1.2 million rows and 69 candidates, measured before thresholds were
/// estimated (an H200).
constexpr double byte_candidate_cost(std::int64_t k) {
  return k <= kMostReranked ? 5.0e6 : 7.5e6;
}
/// The factor where warps multiply rather than Hopper's warpgroups. Halves take
/// longer there: 0.0159 s rather than 0.0111 s at n = 100,000 (an H100 with the
/// code of other GPUs; an H200). The time of bytes by warps was not measured:
/// twice as many products a second are assumed.
static constexpr double kByWarps = 0.0111 / 0.0159;

/// The cost on such devices; infinite if unknown. NVIDIA gave data-centre GPUs
/// of compute capability 10 and 11 other instructions for products, which are
/// not used here. The speed of products of bytes by warps differs among these
/// GPUs.
inline double byte_candidate_cost(const GpuFacts& gpus, std::int64_t k) {
  constexpr int hopper = 90;
  if (gpus.capability == hopper && gpus.most_capability == hopper &&
      gpus.hopper_code)
    return byte_candidate_cost(k);
  return gpus.most_capability >= 100 && gpus.capability < 120
             ? HUGE_VAL
             : kByWarps * byte_candidate_cost(k);
}

/// The number of features, for each side, that hold the error of a row of
/// bytes.
constexpr std::int64_t error_parts(std::int64_t num_features) {
  return 2 + (num_features + 127) / 128;
}

/// The bits of a feature in the form; 0 without a form.
constexpr int bits_of(NumberForm form) {
  return form == NumberForm::none ? 0 : bits_of(entry_of(form).numbers);
}

/// The error of tensor cores grows with the number of terms. So long rows are
/// summed in ranges of kFilterFeatureRange features, and the ranges in floats.
/// This takes time, so that it is done only beyond kMostInOne features.
static constexpr std::int64_t kFilterFeatureRange = 1024, kMostInOne = 2048;
inline bool has_feature_ranges(std::int64_t depth) {
  return depth > kMostInOne;
}
/// The bytes of a block of threads for the sums of earlier ranges.
static constexpr std::int64_t kFeatureRangeBytes = 128 * 1024;

/// For products raw rows have additional features: their norms, in parts. The
/// two sides of a pair differ in these, so that a slot has a row for each side.
static constexpr std::int64_t kNormFeatures = 6;

/// The layout of a row in a form.
struct RowsInForm {
  RowsInForm() = default;
  /// unit: of length 1, for products. For all forms except codes.
  RowsInForm(NumberForm number_form, bool unit, std::int64_t num_features);

  NumberForm form = NumberForm::none;
  std::int64_t features = 0;       ///< of the points
  int sides = 1;                   ///< rows of a slot
  std::int64_t depth = 0;          ///< numbers of a row
  std::int64_t row_bytes = 0;      ///< of a slot's rows
  std::int64_t floats_a_slot = 0;  ///< further floats
  std::int64_t work = 0;           ///< for a pair, in features of halves
  double bytes_sums = 0;  ///< on a multiprocessor, for sums over ranges

  bool unit = false;     ///< rows of length 1
  bool centred = false;  ///< and less a centre
  /// Whether there is room for centred rows, which a search may find better.
  bool may_centre = false;
  std::int64_t spare_bytes = 0;  ///< of a slot, for centred rows

  /// Equal rows may learn the same and be replaced by the same form.
  bool operator==(const RowsInForm& other) const {
    return form == other.form && features == other.features &&
           unit == other.unit && centred == other.centred &&
           may_centre == other.may_centre && instead == other.instead;
  }

  /// Returns the same with room to centre, if these rows have a centred form;
  /// else unchanged.
  RowsInForm with_room_to_centre() const;

  /// For codes, the form if points are not small whole numbers.
  NumberForm instead = NumberForm::single;
  static RowsInForm codes(std::int64_t num_features, NumberForm instead,
                          bool unit = false);

  /// The form for points that this one does not suit, or not well.
  /// NumberForm::none if it suits all.
  RowsInForm otherwise() const;

  /// For codes, the most bits that a feature may take.
  int most_code_bits() const;

  /// The filter in words, and the name of its numbers.
  const char* words() const;
  FilterNumbers numbers() const {
    return form == NumberForm::none ? FilterNumbers::none
           : centred                ? FilterNumbers::float16_centred
                                    : entry_of(form).numbers;
  }

  /// The bytes of a whole slot.
  std::int64_t slot_bytes() const {
    return row_bytes + spare_bytes + 4 * floats_a_slot;
  }
};

/// Checks a metric before any other use. Throws std::logic_error for an unknown
/// accumulation, for an invalid sign (kernels compare signs), or for a filter
/// without a bound for the accumulation. FilterKind::none suits every metric.
void check_metric(const MetricEntry& metric);

}  // namespace cuda
}  // namespace fsknn
