#include "core/rows/prepared.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/errors.hpp"
#include "core/base/large_pages.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/arithmetic.hpp"
#include "core/contract/scaling.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/scan.hpp"

namespace fsknn {

double DistanceRule::before_scaling(double distance) const {
  return fsknn::before_scaling(distance, redo_);
}

double DistanceRule::after_scaling(double before) const {
  return std::nextafter(
      a_little_more((before * undo_.scale.first) * undo_.scale.second),
      std::numeric_limits<double>::infinity());
}

void RowReader::make(Place place, double* out) {
  const PreparedPoints& p = *points_;
  if (p.held()) {
    std::memcpy(out, p.row(place),
                static_cast<std::size_t>(p.padded) * sizeof(double));
    return;
  }
  p.source->read(p.order.id_at(place).value, 1, out, p.padded);
  clear_padding(out, p.num_features, p.padded);
  p.kernel(p.recipe, scratch_, out, p.num_features, p.padded);
}

const double* FilterReader::operator()(Place place) {
  const double* const row = reader_(place);
  if (!points_->whole_ranks) return row;
  const double length = std::sqrt(points_->sums[place.value]);
  for (std::int64_t f = 0; f < points_->padded; ++f) made_[f] = row[f] / length;
  return made_.data();
}

RowRecipe recipe_of(const Request& request, int exponent) {
  const MetricEntry& metric = *request.metric;
  RowRecipe recipe;
  recipe.form = metric.row_form;
  recipe.scale = power_of_two(-exponent);
  recipe.needs_sums = metric.is_overlap();
  if (request.weights != nullptr) recipe.weights = request.weights->view();
  if (request.covariates != nullptr)
    recipe.covariates = request.covariates->view();
  recipe.whole_ranks = recipe.form == RowForm::ranked &&
                       !recipe.weights.given() && !recipe.covariates.given();
  return recipe;
}

PreparedPoints prepare_points(const RowSource& source,
                              const RowRecipe& whole_recipe,
                              const std::vector<std::int64_t>& skip,
                              bool shuffle, RowKernel kernel, int num_threads,
                              Progress* progress, bool hold) {
  PreparedPoints points;
  const std::int64_t n = source.num_points(), d = source.num_features();
  const std::int64_t padded = padded_features(d);
  points.num_features = d;
  points.padded = padded;
  points.whole_ranks = whole_recipe.whole_ranks;
  points.order = order_points(n, skip, shuffle);
  points.sums = Buffer<double>(points.size());
  const RowRecipe recipe = what_is_left(whole_recipe, source);
  if (!hold && (source.made_when_read() || source.on_disk())) {
    points.source = &source;
    points.recipe = recipe;
    points.kernel = kernel;
    if (recipe.form != RowForm::raw && !recipe.whole_ranks) {
      std::fill_n(points.sums.data(), points.size(), 0.0);
      return points;
    }
  } else {
    points.rows = Buffer<double>(points.size() * padded);
    in_large_pages(points.rows);
  }
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  const double operations =
      4.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_blocks, useful_threads(num_threads, operations),
             {progress, 0.0, 0.0}, [&] {
               return [&, block = Buffer<double>(block_rows * padded),
                       scratch = RowScratch()](std::int64_t b) mutable {
                 const std::int64_t first = b * block_rows;
                 const std::int64_t count = std::min(block_rows, n - first);
                 source.read(first, count, block.data(), padded);
                 for (std::int64_t r = 0; r < count; ++r) {
                   const std::int64_t place =
                       points.order.place[static_cast<std::size_t>(first + r)];
                   if (place < 0) continue;
                   double* row = block.data() + r * padded;
                   if (points.held()) {
                     row = points.rows.data() + place * padded;
                     std::memcpy(row, block.data() + r * padded,
                                 static_cast<std::size_t>(d) * sizeof(double));
                   }
                   clear_padding(row, d, padded);
                   points.sums[place] = kernel(recipe, scratch, row, d, padded);
                   // The proportion of two rows of zeros is undefined.
                   if (recipe.needs_sums && points.sums[place] == 0.0)
                     throw RangeFailure();
                 }
               };
             });
  return points;
}

Request suited(const Request& request, const RowSource& points,
               const RowSource* queries, Progress* progress) {
  Request own = request;
  if (request.metric->is_table()) {
    own.table_entry = std::make_shared<const MetricEntry>(
        for_samples(*request.metric, points.num_features()));
    own.metric = own.table_entry.get();
  }
  if (request.metric->wide_from == kNeverWide) return own;
  if (own.largest < 0) {
    const auto of = [&](const RowSource& source) {
      return request.na_pairwise
                 ? scan_missing(source, request.num_threads, progress,
                                Preparing(), FilledBy::first)
                       .known.largest
                 : scan(source, request.num_threads, progress).largest;
    };
    own.largest = of(points);
    if (queries != nullptr) own.largest = std::max(own.largest, of(*queries));
  }
  own.metric = &metric_for(*request.metric, own.largest);
  return own;
}

int common_exponent(const Request& request, const RowSource& points,
                    const RowSource* queries, int num_threads) {
  const MetricEntry& metric = *request.metric;
  if (metric.matrix_scale == MatrixScale::none) return 0;
  double largest = request.largest;
  if (largest < 0) {
    largest = scan(points, num_threads).largest;
    if (queries != nullptr)
      largest = std::max(largest, scan(*queries, num_threads).largest);
  }
  return matrix_exponent(metric, largest);
}

std::vector<std::int32_t> self_by_place(const Request& request,
                                        const PointOrder& queries) {
  std::vector<std::int32_t> self;
  if (request.query_self.empty()) return self;
  self.reserve(queries.id.size());
  for (const std::int32_t i : queries.id)
    self.push_back(request.query_self[static_cast<std::size_t>(i)]);
  return self;
}

double scalar_sum(Accumulation accumulation, const double* a, const double* b,
                  std::int64_t padded) {
  return with_accumulation(accumulation, [&](auto sum) {
    return accumulate<ScalarLanes, decltype(sum)>(a, b, padded);
  });
}

void emit_missing(const Neighbours& out, AnswerRow row, std::int64_t k) {
  if (out.as_edges()) return;
  for (std::int64_t rank = 0; rank < k; ++rank) {
    const std::int64_t at = out.at(row, Rank{rank});
    out.index[at] = out.missing_index;
    out.distance[at] = out.missing_value;
    if (out.correlation != nullptr) out.correlation[at] = out.missing_value;
  }
}

}  // namespace fsknn
