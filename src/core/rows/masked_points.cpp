#include "core/rows/masked_points.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/base/select.hpp"

namespace fsknn {
namespace {

// With a larger unit, the squares of most rows would be subnormal in half
// precision.
constexpr int kMostOfUnit = 5;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

void rank_known(MaskedScratch& scratch, double* x, std::int64_t d) {
  std::vector<double>& values = scratch.values;
  values.clear();
  for (std::int64_t f = 0; f < d; ++f)
    if (has_value(x[f])) values.push_back(x[f]);
  scratch.ranks(values.data(), static_cast<std::int64_t>(values.size()));
  std::size_t next = 0;
  for (std::int64_t f = 0; f < d; ++f)
    if (has_value(x[f])) x[f] = values[next++];
}

void fill_mask(const double* x, std::int64_t d, std::int64_t words,
               std::uint64_t* mask) {
  std::fill_n(mask, words, std::uint64_t{0});
  for (std::int64_t f = 0; f < d; ++f)
    if (has_value(x[f])) mask[f / 64] |= std::uint64_t{1} << (f % 64);
}

PowerOfTwo scale_of_row(const MaskedRule& rule, const double* x,
                        std::int64_t d) {
  if (rule.form() == RowForm::raw) return rule.scale();
  double largest = 0.0, smallest = HUGE_VAL;
  for (std::int64_t f = 0; f < d; ++f) {
    if (!has_value(x[f]) || x[f] == 0.0) continue;
    largest = std::max(largest, std::fabs(x[f]));
    smallest = std::min(smallest, std::fabs(x[f]));
  }
  return scale_of_known(largest, smallest);
}

double median_of(std::vector<double>& values) {
  if (values.empty()) return 0.0;
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MaskedRule::MaskedRule(const Request& asked, const RowSource& points,
                       const RowSource* queries, Progress* progress)
    : metric_(asked.metric),
      terms_{asked.metric->accumulation, static_cast<double>(asked.min_pairs),
             static_cast<double>(points.num_features()), 0.0,
             asked.metric->table},
      scale_(no_scaling()),
      rule_(*asked.metric, 0) {
  // No rank exceeds d, and a row's largest value is scaled to [1, 2). Ranks are
  // whole or halves, so they become multiples of this.
  if (form() == RowForm::ranked)
    terms_.grid = two_to(-exponent_of(terms_.num_features) - 1);
  if (metric_->matrix_scale == MatrixScale::none) return;
  const Request request = suited(asked, points, queries, progress);
  metric_ = request.metric;
  const int exponent = matrix_exponent(*metric_, request.largest);
  scale_ = power_of_two(-exponent);
  rule_ = DistanceRule(*metric_, exponent);
}

std::int64_t prepare_masked_row(const MaskedRule& rule, MaskedScratch& scratch,
                                double* x, std::int64_t d,
                                std::int64_t padded) {
  if (rule.form() == RowForm::ranked) rank_known(scratch, x, d);
  const PowerOfTwo scale = scale_of_row(rule, x, d);
  std::int64_t known = 0;
  for (std::int64_t f = 0; f < d; ++f) {
    known += has_value(x[f]);
    x[f] = has_value(x[f]) ? (x[f] * scale.first) * scale.second : kMissing;
  }
  std::fill(x + d, x + padded, kMissing);
  return known;
}

void RankedKnown::read(std::int64_t first, std::int64_t count, double* out,
                       std::int64_t stride) const {
  from_.read(first, count, out, stride);
  MaskedScratch scratch;
  for (std::int64_t r = 0; r < count; ++r)
    rank_known(scratch, out + r * stride, num_features());
}

MaskedPoints prepare_masked(const RowSource& source, const MaskedRule& rule,
                            const std::vector<std::int64_t>& skip, bool shuffle,
                            int num_threads, Progress* progress) {
  MaskedPoints points;
  const std::int64_t n = source.num_points(), d = source.num_features();
  points.num_features = d;
  points.padded = padded_features(d);
  points.words = (d + 63) / 64;
  points.order = order_points(n, skip, shuffle);
  points.rows = Buffer<double>(points.size() * points.padded);
  points.masks = Buffer<std::uint64_t>(points.size() * points.words);
  points.known = Buffer<std::int32_t>(points.size());
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  const double operations =
      8.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_blocks, useful_threads(num_threads, operations),
             {progress, 0.0, 0.0}, [&] {
               return [&, block = Buffer<double>(block_rows * points.padded),
                       scratch = MaskedScratch()](std::int64_t b) mutable {
                 const std::int64_t first = b * block_rows;
                 const std::int64_t count = std::min(block_rows, n - first);
                 source.read(first, count, block.data(), points.padded);
                 for (std::int64_t r = 0; r < count; ++r) {
                   const std::int64_t place =
                       points.order.place[static_cast<std::size_t>(first + r)];
                   if (place < 0) continue;
                   double* row = points.rows.data() + place * points.padded;
                   std::memcpy(row, block.data() + r * points.padded,
                               static_cast<std::size_t>(d) * sizeof(double));
                   points.known[place] =
                       static_cast<std::int32_t>(prepare_masked_row(
                           rule, scratch, row, d, points.padded));
                   fill_mask(row, d, points.words,
                             points.masks.data() + place * points.words);
                 }
               };
             });
  return points;
}

std::int64_t masked_units_step(std::int64_t num_points) {
  constexpr std::int64_t kSampled = 256;
  return std::max<std::int64_t>(1, num_points / kSampled);
}

MaskedUnits masked_units(const MaskedPoints& points, const MaskedRule& rule,
                         int headroom) {
  const std::int64_t n = points.size(), step = masked_units_step(n);
  return masked_units(points.rows.data(), (n + step - 1) / step,
                      step * points.padded, points.num_features, rule,
                      headroom);
}

MaskedUnits masked_units(const double* rows, std::int64_t count,
                         std::int64_t stride, std::int64_t num_features,
                         const MaskedRule& rule, int headroom) {
  MaskedUnits units;
  std::vector<double> values;
  for (std::int64_t f = 0; f < num_features; ++f) {
    values.clear();
    for (std::int64_t i = 0; i < count; ++i)
      if (has_value(rows[i * stride + f]))
        values.push_back(rows[i * stride + f]);
    units.centre.push_back(median_of(values));
  }
  values.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    const double* row = rows + i * stride;
    double largest = 0.0;
    for (std::int64_t f = 0; f < num_features; ++f)
      if (has_value(row[f]))
        largest = std::max(
            largest,
            std::fabs(row[f] - units.centre[static_cast<std::size_t>(f)]));
    values.push_back(largest);
  }
  double longest = 0.0;
  for (const double x : values) longest = std::max(longest, x);
  const double unit = median_of(values);
  // Squares below 2^-400 of the matrix's largest are left to the exact step:
  // squares that underflow there are negligible in this unit.
  const bool squared =
      rule.terms().accumulation == Accumulation::squared_difference;
  if (unit > 0.0) {
    const int above = exponent_of(longest) - exponent_of(unit);
    units.by =
        power_of_two(-std::max(exponent_of(unit), squared ? -400 : -1000) -
                     std::clamp(above - headroom, 0, kMostOfUnit));
  }
  return units;
}

void emit_masked(const Neighbours& out, AnswerRow row, std::int64_t k,
                 std::int64_t size, const double* distance,
                 const std::int32_t* index, const double* correlation) {
  if (size > 0 && !is_in_range(distance[size - 1])) throw RangeFailure();
  for (std::int64_t rank = 0; rank < k; ++rank) {
    const std::int64_t at = out.at(row, Rank{rank});
    const bool there = rank < size;
    out.index[at] = there ? index[rank] + 1 : out.missing_index;
    out.distance[at] = there ? distance[rank] : out.missing_value;
    if (out.correlation != nullptr)
      out.correlation[at] = there ? correlation[rank] : out.missing_value;
  }
}

void brute_force_masked(const Request& request, const RowSource& points,
                        const RowSource* queries, const Neighbours& out) {
  const MaskedRule rule(request, points, queries);
  const MaskedPoints columns =
      prepare_masked(points, rule, request.skip, false, 1);
  MaskedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_masked(*queries, rule, request.query_skip, false, 1);
  const MaskedPoints& rows = queries != nullptr ? own_rows : columns;
  const auto pair = [&](std::int64_t a, std::int64_t b) {
    return rule.value(masked_pair<ScalarLanes>(rule.terms(), rows.row(Place{a}),
                                               columns.row(Place{b}),
                                               columns.padded));
  };

  const std::vector<std::int32_t> self = self_by_place(request, rows.order);
  const std::size_t k = static_cast<std::size_t>(request.k);
  std::vector<double> distance(k), correlation(k);
  std::vector<std::int32_t> index(k);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int32_t a = rows.order.place[static_cast<std::size_t>(i)];
    if (a < 0) {
      emit_missing(out, AnswerRow::of(i), request.k);
      continue;
    }
    NeighbourHeap heap(distance.data(), index.data(), request.k, 0);
    for (std::int32_t b = 0; b < columns.size(); ++b) {
      const PointId other = columns.order.id_at(Place{b});
      if (queries == nullptr
              ? a == b
              : !self.empty() &&
                    self[static_cast<std::size_t>(a)] == other.value)
        continue;
      const double value = pair(a, b);
      if (has_value(value)) heap.offer(rule.distance(value), other);
    }
    const std::int64_t size = heap.size();
    heap.sort();
    if (out.correlation != nullptr)
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank)
        correlation[rank] =
            pair(a, columns.order.place_of(PointId{index[rank]}).value);
    emit_masked(out, AnswerRow::of(i), request.k, size, distance.data(),
                index.data(), correlation.data());
  }
}

}  // namespace fsknn
