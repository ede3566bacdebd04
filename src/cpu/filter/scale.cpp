#include "cpu/filter/scale.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/contract/table_numbers.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/byte_unit.hpp"
#include "cpu/filter/bytes_pay.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sample.hpp"
#include "cpu/filter/two_values.hpp"

namespace fsknn {
namespace cpu {
namespace {

// A matrix with entries beyond this multiple of the mean magnitude is filtered
// in floats, because one huge entry would cost all others their resolution.
constexpr double kWideRange = 64.0;
// Beyond this number the rounding of float sums is no longer small.
constexpr std::int64_t kMostFloatFeatures = std::int64_t{1} << 20;

struct Spread {
  double largest = 0.0;
  double mean = 0.0;
};

/// The largest and mean magnitude of the entries, less their column's centre.
Spread spread_of(const PreparedPoints& points, const Buffer<double>& centre,
                 int num_threads) {
  const std::int64_t n = points.size(), padded = points.padded;
  constexpr std::int64_t block_rows = 256;
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  // Until the end, mean holds the total.
  std::vector<Spread> of_block(static_cast<std::size_t>(num_blocks));
  run_pieces(num_blocks, num_threads, {}, [&] {
    return [&, row = FilterReader(points)](std::int64_t block) mutable {
      Spread& spread = of_block[static_cast<std::size_t>(block)];
      const std::int64_t end = std::min(n, (block + 1) * block_rows);
      for (std::int64_t i = block * block_rows; i < end; ++i) {
        const double* x = row(Place{i});
        for (std::int64_t f = 0; f < padded; ++f) {
          const double v =
              std::fabs(centre.size() > 0 ? x[f] - centre[f] : x[f]);
          spread.largest = v > spread.largest ? v : spread.largest;
          spread.mean += v;
        }
      }
    };
  });
  Spread all;
  for (const Spread& spread : of_block) {
    all.largest = std::max(all.largest, spread.largest);
    all.mean += spread.mean;
  }
  all.mean /= static_cast<double>(n) * static_cast<double>(points.num_features);
  return all;
}

/// Whether all entries are 0 or 1. In most other data the first row shows that
/// they are not.
bool holds_bits(const PreparedPoints& points, int num_threads) {
  constexpr std::int64_t block_rows = 256;
  const std::int64_t n = points.size();
  std::atomic<bool> bits{points.num_features < kMostBits};
  run_pieces((n + block_rows - 1) / block_rows, num_threads, {}, [&] {
    return [&, row = FilterReader(points)](std::int64_t block) mutable {
      const std::int64_t end = std::min(n, (block + 1) * block_rows);
      for (std::int64_t i = block * block_rows; i < end; ++i) {
        if (!bits.load(std::memory_order_relaxed)) return;
        const double* x = row(Place{i});
        bool others = false;
        for (std::int64_t f = 0; f < points.padded; ++f)
          others |= x[f] != 0.0 && x[f] != 1.0;
        if (others) bits.store(false, std::memory_order_relaxed);
      }
    };
  });
  return bits;
}

bool all_bits(const PreparedPoints& points, const PreparedPoints* queries,
              int num_threads) {
  return holds_bits(points, num_threads) &&
         (queries == nullptr || holds_bits(*queries, num_threads));
}

/// The forms of an elementwise filter, and the properties by which they are
/// chosen.
struct Elementwise {
  const FilterForm* bits;   ///< for rows of 0 and 1; may be null
  const FilterForm* bytes;  ///< may be null
  const FilterForm* whole;
  const FilterForm* floats;
  /// Whether columns are centred first, as in filters of differences.
  bool centred;
  /// Whether the whole numbers are summed over the features.
  bool summed;
  /// A bound on the error that rounding two rows adds to their distance. sums:
  /// of the two rows together.
  double (*blur)(double unit, double num_features, double sums);
};

double blur_of_sum(double unit, double num_features, double) {
  return 0.5 * unit * num_features;
}
double blur_of_largest(double unit, double, double) { return unit; }
double blur_of_overlap(double unit, double num_features, double sums) {
  return 2.0 * (0.5 * unit * num_features) / sums;
}

constexpr Elementwise kDifference = {
    &kBitsDistance, &kByteDistance, &kWholeSumDistance, &kFloatSumDistance,
    true,           true,           &blur_of_sum};
constexpr Elementwise kLargest = {
    nullptr, nullptr, &kWholeLargestDifference, &kFloatLargestDifference,
    true,    false,   &blur_of_largest};
constexpr Elementwise kOverlap = {
    &kBitsOverlap, &kByteProportion, &kWholeOverlap, &kFloatOverlap, false,
    true,          &blur_of_overlap};

/// Whether one unit for the whole matrix is too coarse for near rows: compares
/// its rounding with the nearest distances in a sample.
bool unit_is_coarse(double unit, const Elementwise& filter,
                    const MetricEntry& metric, const DistanceRule& rule,
                    const Kernels& kernels, const PreparedPoints& points) {
  const std::int32_t m =
      static_cast<std::int32_t>(std::min<std::int64_t>(points.size(), 64));
  const double d = static_cast<double>(points.num_features);
  const Buffer<double> rows = sample_rows(points, m);
  std::int32_t coarse = 0;
  for (std::int32_t i = 0; i < m; ++i) {
    double nearest = kInfinity, allowed = 0.0;
    for (std::int32_t j = 0; j < m; ++j) {
      if (i == j) continue;
      const Pair pair = {i, j};
      double sum = 0.0;
      kernels.exact(metric.accumulation, rows.data(), rows.data(),
                    points.padded, &pair, 1, &sum);
      const double own = points.sums[sampled(points, i, m).value];
      const double other = points.sums[sampled(points, j, m).value];
      const double distance = rule.before_scaling(rule(sum, own, other));
      if (distance < nearest) {
        nearest = distance;
        allowed = filter.blur(unit, d, own + other);
      }
    }
    coarse += allowed > 0.02 * nearest;
  }
  return 4 * coarse > m;
}

const FilterForm& similarity_form(Sign sign, bool centred) {
  switch (sign) {
    case Sign::signed_value:
      return centred ? kCentredSimilarity : kWholeSimilarity;
    case Sign::absolute: return kWholeAbsoluteSimilarity;
    case Sign::negative:
      return centred ? kCentredNegativeSimilarity : kWholeNegativeSimilarity;
  }
  throw_unknown("sign", static_cast<int>(sign));
}

const FilterForm& byte_form(Sign sign, bool centred) {
  switch (sign) {
    case Sign::signed_value:
      return centred ? kCentredByteSimilarity : kByteSimilarity;
    case Sign::absolute: return kByteAbsoluteSimilarity;
    case Sign::negative:
      return centred ? kCentredByteNegativeSimilarity : kByteNegativeSimilarity;
  }
  throw_unknown("sign", static_cast<int>(sign));
}

/// For rows of length 1.
FilterScale similarity_scale(const MetricEntry& metric,
                             const DistanceRule& rule, const Kernels& kernels,
                             const PreparedPoints& points,
                             const PreparedPoints* queries, int num_threads,
                             const FilterUse& use) {
  FilterScale scale;
  scale.whole_ranks = points.whole_ranks;
  // Sums of bits do not determine similarities, so that this needs use.centred.
  const bool is_centred = metric.row_form != RowForm::unit;
  if (use.centred && use.bits == 0 &&
      holds_two_values(points, is_centred, num_threads) &&
      (queries == nullptr ||
       holds_two_values(*queries, is_centred, num_threads))) {
    scale.form = &two_value_form(metric);
    return scale;
  }
  // Differences from a centre do not determine a magnitude.
  if (use.centred && metric.sign != Sign::absolute)
    scale.centre = centre_of_near_rows(points);
  const bool centred = scale.centre.size() > 0;
  const FilterForm& wider = similarity_form(metric.sign, centred);
  const auto take = [&](const FilterForm& form) {
    scale.form = &form;
    if (centred) scale.part = part_of_error(scale, points);
  };
  if (use.bits == 8 || (use.bits == 0 && multiplies_bytes(kernels))) {
    take(byte_form(metric.sign, centred));
    if (use.bits == 8 ||
        bytes_pay(metric, rule, kernels, points, queries, use, scale, wider))
      return scale;
  }
  take(wider);
  return scale;
}

/// A power of two near the length of most rows after centring. The matrix's
/// largest entry may be far larger than all others.
double unit_of_length(const PreparedPoints& points,
                      const Buffer<double>& centre) {
  constexpr int least = -400;  // keeps squares of units far from underflow
  const double length = median_length(points, centre);
  return length > 0.0 ? two_to(std::max(exponent_of(length), least)) : 1.0;
}

FilterScale products_scale(const MetricEntry& metric, const DistanceRule& rule,
                           const Kernels& kernels, const PreparedPoints& points,
                           const PreparedPoints* queries, int num_threads,
                           const FilterUse& use) {
  FilterScale scale;
  if (metric.is_unit_dot())
    return similarity_scale(metric, rule, kernels, points, queries, num_threads,
                            use);
  if (metric.accumulation == Accumulation::dot) {
    scale.form = &kWholeProduct;
    scale.unit = kProductUnit;
    return scale;
  }
  if (all_bits(points, queries, num_threads)) {
    scale.form = &kBitsSquaredDistance;
    return scale;
  }
  scale.form = &kWholeSquaredDistance;
  scale.centre = column_medians(points);
  scale.unit = unit_of_length(points, scale.centre);
  return scale;
}

/// Chooses whole numbers of 16 bits, or floats where these are too coarse.
FilterScale wide_scale(const Elementwise& filter, const MetricEntry& metric,
                       const DistanceRule& rule, const Kernels& kernels,
                       const PreparedPoints& points,
                       const PreparedPoints* queries, int num_threads) {
  FilterScale scale;
  scale.form = filter.whole;
  const std::int64_t padded = points.padded;
  if (filter.centred) scale.centre = column_medians(points);
  Spread spread = spread_of(points, scale.centre, num_threads);
  if (queries != nullptr)
    spread.largest = std::max(
        spread.largest, spread_of(*queries, scale.centre, num_threads).largest);
  const double most =
      filter.summed
          ? std::min<double>(kLargestWhole,
                             static_cast<double>(kLargestSum / padded))
          : kLargestHalf;
  scale.largest = static_cast<std::int32_t>(most);
  scale.reach = spread.largest;
  // Without spread, or with too little, every pair goes to the exact step (the
  // forms' usable()).
  scale.unit = scale.largest > 0 ? spread.largest / most : 0.0;
  const bool in_reach = spread.largest > 1e-280 && spread.largest < 1e280 &&
                        padded < kMostFloatFeatures;
  if (in_reach &&
      (spread.largest > kWideRange * spread.mean ||
       unit_is_coarse(scale.unit, filter, metric, rule, kernels, points))) {
    scale.form = filter.floats;
    scale.unit = two_to(exponent_of(spread.largest));
  }
  return scale;
}

FilterScale elementwise_scale(const Elementwise& filter,
                              const MetricEntry& metric,
                              const DistanceRule& rule, const Kernels& kernels,
                              const PreparedPoints& points,
                              const PreparedPoints* queries, int num_threads,
                              const FilterUse& use) {
  if (filter.bits != nullptr && all_bits(points, queries, num_threads)) {
    FilterScale scale;
    scale.form = filter.bits;
    return scale;
  }
  FilterScale wide =
      wide_scale(filter, metric, rule, kernels, points, queries, num_threads);
  if (filter.bytes == nullptr || use.bits > 8 ||
      (use.bits == 0 && (use.k == 0 || !subtracts_bytes(kernels))))
    return wide;
  FilterScale bytes;
  bytes.form = filter.bytes;
  fit_bytes(bytes, points, queries);
  const bool pay =
      use.bits == 8 ||
      (bytes.form->usable(bytes) && bytes_pay(metric, rule, kernels, points,
                                              queries, use, bytes, *wide.form));
  return pay ? std::move(bytes) : std::move(wide);
}

FilterScale no_scale() {
  FilterScale scale;
  scale.form = &kNoFilter;
  return scale;
}

}  // namespace

FilterUse use_for_lists(const Request& request) {
  return {request.k, asked_numbers(request).bits};
}
FilterUse use_within(const Request& request) {
  return {0, asked_numbers(request).bits};
}

FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads,
                         const FilterUse& use) {
  const auto elementwise = [&](const Elementwise& filter) {
    return elementwise_scale(filter, metric, rule, kernels, points, queries,
                             num_threads, use);
  };
  switch (metric.filter) {
    case FilterKind::none: return no_scale();
    case FilterKind::product:
      return products_scale(metric, rule, kernels, points, queries, num_threads,
                            use);
    case FilterKind::difference: return elementwise(kDifference);
    case FilterKind::largest: return elementwise(kLargest);
    case FilterKind::overlap:
    case FilterKind::bits: return elementwise(kOverlap);
    case FilterKind::table: {
      if (metric.table.samples >= kMostTableSamples) return no_scale();
      FilterScale scale;
      const bool bytes =
          use.bits == 8 || (use.bits == 0 && multiplies_bytes(kernels));
      scale.form = bytes ? &kByteTable : &kTable;
      scale.table = metric.table;
      if (!scale.form->usable(scale)) return no_scale();
      return scale;
    }
  }
  throw_unknown("filter", static_cast<int>(metric.filter));
}

bool reaches(const FilterScale& scale, const PreparedPoints& queries,
             int num_threads) {
  if (is_two_values(*scale.form))
    return holds_two_values(queries, scale.form != &kTwoValues, num_threads);
  if (scale.form->product == Product::common_bits)
    return holds_bits(queries, num_threads);
  if (scale.form->product == Product::byte_difference)
    return bytes_fit(scale, queries);
  return scale.reach == HUGE_VAL ||
         spread_of(queries, scale.centre, num_threads).largest <= scale.reach;
}

}  // namespace cpu
}  // namespace fsknn
