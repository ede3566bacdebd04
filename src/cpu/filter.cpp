#include "cpu/filter.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/pieces.hpp"
#include "cpu/kernels_includes.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

// Rows of length 1 times this are whole numbers of 16 bits; the product of two
// is below 2^31 by Cauchy-Schwarz as long as rounding adds less than 40%.
constexpr double kUnitScale = 32767.0;
// The same for rows of any length: rounded ones are at most this long, and
// 46340^2 < 2^31. Rounding adds at most half the root of the features.
constexpr double kLargestNorm = 46340.0;
constexpr double kLargestWhole = 32767.0;
// Differences of two whole numbers stay within 16 bits.
constexpr double kLargestHalf = 16383.0;
// Sums of whole numbers over all features stay within 2^29, so that no test
// overflows 32 bits.
constexpr std::int32_t kLargestSum = 1 << 29;
constexpr std::int32_t kKeepAllSums = (1 << 30) + (1 << 20);
// A matrix with entries beyond this many times the mean magnitude is taken in
// floats: one huge entry must not cost all others their resolution.
constexpr double kWideRange = 64.0;
// Rows shorter than this (where the largest entry is at least 1) count as 0.
constexpr double kTinyNorm = 1e-15;
constexpr double kTinySquare = 1e-22;
// Beyond this many, the rounding of float sums is no longer small.
constexpr std::int64_t kMostFloatFeatures = std::int64_t{1} << 20;
// What floats near their smallest may have lost, in units of the matrix.
constexpr double kTinyFloat = 1e-30;
// Rounding of the tests' own float arithmetic, relative; see each test.
constexpr double kFloatSlack = 4e-6;

/// Rounds to the nearest whole number, |x| < 2^51; one addition and one
/// subtraction, so that loops of it become vector code.
inline double whole(double x) {
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  return (x + shift) - shift;
}

float float_up(double x) {
  if (x > static_cast<double>(std::numeric_limits<float>::max()))
    return kFloatInfinity;
  if (x < static_cast<double>(std::numeric_limits<float>::lowest()))
    return std::numeric_limits<float>::lowest();
  const float y = static_cast<float>(x);
  return y < x ? std::nextafter(y, kFloatInfinity) : y;
}
float float_down(double x) { return -float_up(-x); }

/// A sample of `count` points is spread evenly over their places.
std::int64_t sampled(const PreparedPoints& points, std::int64_t i,
                     std::int64_t count) {
  return i * points.size() / count;
}

/// [count x padded]
Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count) {
  Buffer<double> rows(count * points.padded);
  RowReader reader(points);
  for (std::int64_t i = 0; i < count; ++i)
    reader.make(sampled(points, i, count), rows.data() + i * points.padded);
  return rows;
}

/// Column medians of some points; [padded]. One huge entry moves no median.
Buffer<double> column_medians(const PreparedPoints& points) {
  const std::int64_t m = std::min<std::int64_t>(points.size(), 63);
  Buffer<double> centre(points.padded);
  std::vector<double> column(static_cast<std::size_t>(m));
  const Buffer<double> rows = sample_rows(points, m);
  for (std::int64_t f = 0; f < points.padded; ++f) {
    for (std::int64_t i = 0; i < m; ++i)
      column[static_cast<std::size_t>(i)] = rows[i * points.padded + f];
    std::nth_element(column.begin(), column.begin() + m / 2, column.end());
    centre[f] = column[static_cast<std::size_t>(m / 2)];
  }
  return centre;
}

struct Spread {
  double largest = 0.0;
  double mean = 0.0;
};

/// Magnitudes of the entries less their column's centre.
Spread spread_of(const PreparedPoints& points, const Buffer<double>& centre,
                 int num_threads) {
  const std::int64_t n = points.size(), padded = points.padded;
  constexpr std::int64_t block_rows = 256;
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  // mean holds the total until all is added up.
  std::vector<Spread> of_block(static_cast<std::size_t>(num_blocks));
  run_pieces(num_blocks, num_threads, {}, [&] {
    return [&, row = RowReader(points)](std::int64_t block) mutable {
      Spread& spread = of_block[static_cast<std::size_t>(block)];
      const std::int64_t end = std::min(n, (block + 1) * block_rows);
      for (std::int64_t i = block * block_rows; i < end; ++i) {
        const double* x = row(i);
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

/// One row on its way into a panel.
struct RowPacker {
  RowPacker(const FilterScale& common, std::int64_t num_padded)
      : scale(common), padded(num_padded), value(num_padded), step(num_padded) {
    clear();
  }

  const FilterScale& scale;
  std::int64_t padded;
  Buffer<double> value;
  Buffer<std::int32_t> step;  ///< the row as it goes into its panel

  void clear() { std::fill_n(step.data(), padded, 0); }

  void load(const double* x) {
    if (scale.centre.size() == 0) {
      std::memcpy(value.data(), x, static_cast<std::size_t>(padded) * 8);
      return;
    }
    for (std::int64_t f = 0; f < padded; ++f) value[f] = x[f] - scale.centre[f];
  }
  /// value * inverse rounded to q, within +-largest, two in a step. Four sums
  /// at once.
  struct Residual {
    double squares = 0.0;  ///< sum (value * inverse - q)^2
    double sizes = 0.0;    ///< sum |value * inverse - q|
    double total = 0.0;    ///< sum q
  };
  Residual quantise(double inverse, double largest) {
    Residual r;
    double squares[4] = {0, 0, 0, 0}, sizes[4] = {0, 0, 0, 0};
    double total[4] = {0, 0, 0, 0};
    for (std::int64_t f = 0; f < padded; f += 4) {
      std::uint32_t q[4];
      for (int l = 0; l < 4; ++l) {
        const double y = value[f + l] * inverse;
        // Within range but for the last bit of the division.
        const double w = whole(std::min(std::max(y, -largest), largest));
        squares[l] += (y - w) * (y - w);
        sizes[l] += std::fabs(y - w);
        total[l] += w;
        q[l] = static_cast<std::uint32_t>(static_cast<std::int32_t>(w)) &
               0xffffu;
      }
      step[f / 2] = static_cast<std::int32_t>(q[0] | q[1] << 16);
      step[f / 2 + 1] = static_cast<std::int32_t>(q[2] | q[3] << 16);
    }
    for (int l = 0; l < 4; ++l) {
      r.squares += squares[l];
      r.sizes += sizes[l];
      r.total += total[l];
    }
    return r;
  }
};

void pack_unit_row(RowPacker& packer, double* error) {
  const RowPacker::Residual r = packer.quantise(kUnitScale, kLargestWhole);
  *error = std::max(*error, std::sqrt(r.squares) / kUnitScale);
}

/// first: a (float). second is w, made by set_bounds from the squared norm.
void pack_length_row(RowPacker& packer, FilterRows& rows, std::int64_t place,
                     double* error) {
  double square = 0.0, largest = 0.0;
  for (std::int64_t f = 0; f < packer.padded; ++f) {
    const double v = packer.value[f];
    square += v * v;
    largest = std::max(largest, std::fabs(v));
  }
  const double norm = std::sqrt(square);
  if (norm < kTinyNorm) {
    packer.clear();
    rows.first[place] = as_bits(0.0f);
    rows.second[place] = as_bits(0.0f);
    return;
  }
  const double room =
      kLargestNorm - 0.5 * std::sqrt(static_cast<double>(packer.padded)) - 1.0;
  const float a = float_up(std::max(norm / room, largest / kLargestWhole));
  const RowPacker::Residual r =
      packer.quantise(1.0 / static_cast<double>(a), kLargestWhole);
  *error = std::max(*error,
                    std::sqrt(r.squares) * static_cast<double>(a) / norm);
  rows.first[place] = as_bits(a);
  rows.second[place] = as_bits(static_cast<float>(square));
}

/// first: p = sum of the whole numbers less what rounding may have added, for
/// lower bounds; plus what it may have taken, as a float, for upper bounds.
void pack_sum_row(RowPacker& packer, FilterRows& rows, std::int64_t place) {
  const RowPacker::Residual r =
      packer.quantise(1.0 / packer.scale.unit, packer.scale.largest);
  const double rounding = r.sizes * (1 + 1e-7) + 2.0;
  rows.first[place] = static_cast<std::int32_t>(r.total - std::ceil(rounding));
  rows.first_upper[place] = as_bits(float_up(r.total + rounding));
}

/// The relative error of a float sum over `padded` features, of values that
/// were themselves rounded, and of the test that reads it: see the vignette.
double float_error(std::int64_t padded) {
  return (static_cast<double>(padded) + 16.0) * 0x1p-24 * 1.1;
}

/// Rows in floats. first: for sums and differences, the row's own term less
/// what rounding may have added, and plus it for upper bounds; for overlaps,
/// s, the row's sum in units.
void pack_float_row(RowPacker& packer, FilterRows& rows, std::int64_t place) {
  const double inverse = 1.0 / packer.scale.unit;  // a power of two
  double size = 0.0, total = 0.0, largest = 0.0;
  for (std::int64_t f = 0; f < packer.padded; ++f) {
    const double y = packer.value[f] * inverse;
    size += std::fabs(y);
    total += y;
    largest = std::max(largest, std::fabs(y));
    packer.step[f] = as_bits(static_cast<float>(y));
  }
  const double error = float_error(packer.padded);
  double lower = total, upper = total;
  switch (packer.scale.test) {
    case Test::float_sum_distance:
      lower = total - 2.0 * error * size - kTinyFloat;
      upper = total + 2.0 * error * size + kTinyFloat;
      break;
    case Test::float_largest_difference:
      lower = -kFloatSlack * largest - kTinyFloat;
      upper = -lower;
      break;
    default:
      // g: what sums of subnormal floats may have lost, and no 0 / 0 in a key.
      rows.second[place] = as_bits(float_up(kTinyFloat));
      break;
  }
  rows.first[place] = as_bits(float_down(lower));
  rows.first_upper[place] = as_bits(float_up(upper));
}

/// first: s, the row's sum in units; second: g, twice the rounding in units.
void pack_overlap_row(RowPacker& packer, FilterRows& rows, double row_sum,
                      std::int64_t place) {
  const RowPacker::Residual r =
      packer.quantise(1.0 / packer.scale.unit, packer.scale.largest);
  const double g = 2.0 * r.sizes * (1 + kFloatSlack) + 1e-3;
  rows.first[place] =
      as_bits(static_cast<float>(row_sum / packer.scale.unit));
  rows.second[place] = as_bits(float_up(g));
}

}  // namespace

namespace {

/// Whether one unit for the whole matrix would blur near rows: its rounding
/// against how far apart near rows are, seen on a sample.
bool unit_is_coarse(const FilterScale& scale, const MetricEntry& metric,
                    const DistanceRule& rule, const Kernels& kernels,
                    const PreparedPoints& points) {
  const std::int32_t m =
      static_cast<std::int32_t>(std::min<std::int64_t>(points.size(), 64));
  const double rounding =
      scale.test == Test::largest_difference
          ? scale.unit
          : 0.5 * scale.unit * static_cast<double>(points.num_features);
  const Buffer<double> rows = sample_rows(points, m);
  std::int32_t coarse = 0;
  for (std::int32_t i = 0; i < m; ++i) {
    double nearest = kInfinity, allowed = rounding;
    for (std::int32_t j = 0; j < m; ++j) {
      if (i == j) continue;
      const Pair pair = {i, j};
      double sum = 0.0;
      kernels.exact(metric.accumulation, rows.data(), rows.data(),
                    points.padded, &pair, 1, &sum);
      const double own = points.sums[sampled(points, i, m)];
      const double other = points.sums[sampled(points, j, m)];
      const double sums = own + other;
      const double distance = rule.before_scaling(rule(sum, own, other));
      if (distance < nearest) {
        nearest = distance;
        if (scale.test == Test::overlap) allowed = 2.0 * rounding / sums;
      }
    }
    coarse += allowed > 0.02 * nearest;
  }
  return 4 * coarse > m;
}

Test float_test(Test test) {
  switch (test) {
    case Test::sum_distance: return Test::float_sum_distance;
    case Test::largest_difference: return Test::float_largest_difference;
    default: return Test::float_overlap;
  }
}

}  // namespace

FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads) {
  FilterScale scale;
  const std::int64_t padded = points.padded;
  switch (metric.accumulation) {
    case Accumulation::dot:
      scale.test = metric.sign == Sign::absolute ? Test::absolute_similarity
                   : metric.sign == Sign::negative ? Test::negative_similarity
                                                   : Test::similarity;
      scale.product = Product::dot;
      return scale;
    case Accumulation::squared_difference:
      scale.test = Test::squared_distance;
      scale.product = Product::dot;
      scale.centre = column_medians(points);
      return scale;
    case Accumulation::absolute_difference:
      scale.test = Test::sum_distance;
      scale.product = Product::smaller_sum;
      scale.centre = column_medians(points);
      break;
    case Accumulation::largest_difference:
      scale.test = Test::largest_difference;
      scale.product = Product::largest_difference;
      scale.centre = column_medians(points);
      break;
    case Accumulation::smaller_sum:
      scale.test = Test::overlap;
      scale.product = Product::smaller_sum;
      break;
  }
  Spread spread = spread_of(points, scale.centre, num_threads);
  if (queries != nullptr)
    spread.largest = std::max(
        spread.largest, spread_of(*queries, scale.centre, num_threads).largest);
  const bool sums = scale.product == Product::smaller_sum;
  const double most =
      sums ? std::min<double>(kLargestWhole,
                              static_cast<double>(kLargestSum / padded))
           : kLargestHalf;
  scale.largest = static_cast<std::int32_t>(most);
  // No spread, or none that can be told apart: every pair goes to the exact
  // step (usable() below).
  scale.unit = scale.largest > 0 ? spread.largest / most : 0.0;
  const bool in_reach = spread.largest > 1e-280 && spread.largest < 1e280 &&
                        padded < kMostFloatFeatures;
  if (in_reach &&
      (spread.largest > kWideRange * spread.mean ||
       unit_is_coarse(scale, metric, rule, kernels, points))) {
    scale.floats = true;
    scale.test = float_test(scale.test);
    scale.product = sums ? Product::float_smaller_sum
                         : Product::float_largest_difference;
    scale.unit = two_to(exponent_of(spread.largest));
  }
  return scale;
}

namespace {

void pack_row(RowPacker& packer, FilterRows& rows, double row_sum,
              std::int64_t place, double* error) {
  switch (packer.scale.test) {
    case Test::squared_distance:
      return pack_length_row(packer, rows, place, error);
    case Test::sum_distance: return pack_sum_row(packer, rows, place);
    case Test::largest_difference:
      packer.quantise(1.0 / packer.scale.unit, kLargestHalf);
      return;
    case Test::overlap: return pack_overlap_row(packer, rows, row_sum, place);
    case Test::float_sum_distance:
    case Test::float_largest_difference:
    case Test::float_overlap: return pack_float_row(packer, rows, place);
    default: return pack_unit_row(packer, error);
  }
}

/// Whether whole numbers can hold these rows apart at all.
bool usable(const FilterScale& scale) {
  switch (scale.test) {
    case Test::sum_distance:
    case Test::largest_difference:
    case Test::overlap:
      return scale.unit > 1e-290 && scale.unit < 1e290;
    case Test::float_sum_distance:
    case Test::float_largest_difference:
    case Test::float_overlap: return true;
    default: return scale.slack < 0.4;
  }
}

}  // namespace

FilterRows pack(const FilterScale& scale, const PreparedPoints& points,
                std::int64_t num_places, int num_threads,
                Progress* progress) {
  FilterRows rows;
  rows.num_places = num_places;
  rows.steps = scale.floats ? points.padded : points.padded / 2;
  rows.panels = Buffer<std::int32_t>(num_places * rows.steps);
  rows.first = Buffer<std::int32_t>(num_places);
  rows.second = Buffer<std::int32_t>(num_places);
  rows.first_upper = Buffer<std::int32_t>(num_places);
  rows.second_upper = Buffer<std::int32_t>(num_places);
  for (Buffer<std::int32_t>* numbers :
       {&rows.first, &rows.second, &rows.first_upper, &rows.second_upper})
    std::fill_n(numbers->data(), num_places, 0);
  const bool fit = usable(scale);
  const std::int64_t num_panels = num_places / Tile::panel;
  std::vector<double> error(static_cast<std::size_t>(num_panels), 0.0);
  run_pieces(num_panels, num_threads, {progress, 0.0, 0.0}, [&] {
    return [&, packer = RowPacker(scale, points.padded),
            row = RowReader(points)](std::int64_t panel) mutable {
      std::int32_t* to = rows.panels.data() + panel * Tile::panel * rows.steps;
      for (int c = 0; c < Tile::panel; ++c) {
        const std::int64_t place = panel * Tile::panel + c;
        if (place < points.size() && fit) {
          packer.load(row(place));
          pack_row(packer, rows, points.sums[place], place,
                   &error[static_cast<std::size_t>(panel)]);
        } else {
          packer.clear();
        }
        for (std::int64_t f = 0; f < rows.steps; ++f)
          to[f * Tile::panel + c] = packer.step[f];
      }
    };
  });
  for (const double e : error) rows.error = std::max(rows.error, e);
  return rows;
}

namespace {

// |v_i . v_j - a_i a_j q_i . q_j| <= (2 e + e^2) |v_i| |v_j|, and the product
// of two lengths is at most half the sum of their squares.
void bound_lengths(const FilterScale& scale, FilterRows& rows) {
  for (std::int64_t p = 0; p < rows.num_places; ++p) {
    const double square = as_float(rows.second[p]);
    rows.first_upper[p] = rows.first[p];
    rows.second_upper[p] = as_bits(float_up(square * (1.0 + scale.slack)));
    rows.second[p] = as_bits(float_down(square * (1.0 - scale.slack)));
  }
}

}  // namespace

void set_slack(FilterScale& scale, double error, std::int64_t padded) {
  const double e = error * (1.0 + 1e-6) + 1e-12;
  const double products = 2.0 * e + e * e;
  switch (scale.test) {
    case Test::squared_distance:
      scale.slack = products + kFloatSlack + rounding_of_sums(padded);
      break;
    case Test::sum_distance:
    case Test::largest_difference:
    case Test::overlap:
    case Test::float_sum_distance:
    case Test::float_largest_difference: scale.slack = rounding_of_sums(padded); break;
    case Test::float_overlap:
      scale.slack = rounding_of_sums(padded) + 2.0 * float_error(padded);
      break;
    default: scale.slack = products + rounding_of_sums(padded);
  }
}

void complete(const FilterScale& scale, FilterRows& rows) {
  if (scale.test == Test::squared_distance) bound_lengths(scale, rows);
  if (scale.test == Test::overlap || scale.test == Test::float_overlap) {
    std::copy_n(rows.first.data(), rows.num_places, rows.first_upper.data());
    std::copy_n(rows.second.data(), rows.num_places, rows.second_upper.data());
  }
}

void set_bounds(FilterScale& scale, FilterRows& rows, FilterRows& columns,
                std::int64_t padded) {
  set_slack(scale, std::max(rows.error, columns.error), padded);
  complete(scale, rows);
  if (&rows != &columns) complete(scale, columns);
}

std::int32_t Thresholds::keep_all() const {
  switch (scale_.test) {
    case Test::squared_distance:
    case Test::float_sum_distance:
    case Test::float_largest_difference: return as_bits(kFloatInfinity);
    // Not -inf: the sum of two rows may be 0 here, and 0 * inf is NaN.
    case Test::overlap:
    case Test::float_overlap: return as_bits(-1.0f);
    case Test::sum_distance: return kKeepAllSums;
    case Test::largest_difference:
      return std::numeric_limits<std::int32_t>::max();
    default: return std::numeric_limits<std::int32_t>::min();
  }
}

std::int32_t Thresholds::keep_none() const {
  switch (scale_.test) {
    case Test::squared_distance:
    case Test::float_sum_distance:
    case Test::float_largest_difference: return as_bits(-kFloatInfinity);
    case Test::overlap:
    case Test::float_overlap: return as_bits(kFloatInfinity);
    case Test::sum_distance: return -(1 << 30);
    case Test::largest_difference: return -1;
    default: return std::numeric_limits<std::int32_t>::max();
  }
}

std::int32_t Thresholds::keep_up_to(double distance) const {
  if (!usable(scale_) || !(distance < kInfinity)) return keep_all();
  const double t = rule_.before_scaling(distance);
  switch (scale_.test) {
    case Test::squared_distance: {
      const double square = t * t * (1.0 + scale_.slack) + kTinySquare;
      return as_bits(float_up(square * (1.0 + kFloatSlack)));
    }
    case Test::sum_distance:
    case Test::largest_difference: {
      const double units = t / scale_.unit * (1.0 + scale_.slack) + 3.0;
      if (!(units < kLargestSum * 2.0)) return keep_all();
      return static_cast<std::int32_t>(std::ceil(units));
    }
    case Test::float_sum_distance:
    case Test::float_largest_difference:
      return as_bits(float_up(t / scale_.unit *
                                  (1.0 + scale_.slack + kFloatSlack) +
                              kTinyFloat));
    case Test::overlap:
    case Test::float_overlap: {
      if (!(distance < 1.0)) return keep_all();
      return as_bits(float_down(metric_.least_overlap(distance) - kFloatSlack -
                                scale_.slack));
    }
    default: {
      const double sum =
          (1.0 - t - scale_.slack) * (kUnitScale * kUnitScale) - 2.0;
      if (sum < -2147483647.0) return keep_all();
      return static_cast<std::int32_t>(std::floor(sum));
    }
  }
}

double Thresholds::upper_distance(float key, const Side& row) const {
  if (!usable(scale_) || !(key < kFloatInfinity)) return kInfinity;
  const double k = static_cast<double>(key);
  double before = 0.0;
  switch (scale_.test) {
    case Test::squared_distance: {
      const double w = as_float(row.second[0]);
      const double square = std::max(k + w, 0.0) + (w + std::fabs(k)) * 1e-6;
      before = std::sqrt(square + kTinySquare) * (1.0 + scale_.slack);
      break;
    }
    case Test::sum_distance:
      // Both terms of the key are below 2^31, rounded to 24 bits.
      before = scale_.unit * (k + as_float(row.first[0]) + 1024.0) *
               (1.0 + scale_.slack);
      break;
    case Test::largest_difference:
      before = scale_.unit * (k + 2.0) * (1.0 + scale_.slack);
      break;
    case Test::float_sum_distance:
    case Test::float_largest_difference: {
      const double w = as_float(row.first[0]);
      before = scale_.unit * (std::max(k + w, 0.0) + kTinyFloat +
                              kFloatSlack * (std::fabs(k) + std::fabs(w))) *
               (1.0 + scale_.slack);
      break;
    }
    case Test::overlap:
    case Test::float_overlap: {
      const double overlap = std::max(-k - kFloatSlack - scale_.slack, 0.0);
      return metric_.finish(0.5 * overlap, 0.5, 0.5);
    }
    default: {
      const double similarity =
          -(k + std::fabs(k) * 1e-6) / (kUnitScale * kUnitScale);
      return 1.0 - similarity + scale_.slack;
    }
  }
  return rule_.after_scaling(before);
}

}  // namespace cpu
}  // namespace fsknn
