#include "cpu/search/unheld.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/base/select.hpp"
#include "core/contract/metric.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/lists.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Preparing a row and packing it for the filter costs as much as some ten exact
// pairs.
constexpr std::int64_t kFew = 16;
// The most neighbours that are kept for all queries together.
constexpr std::int64_t kMostKept = std::int64_t{1} << 20;

/// One thread, which reads and prepares blocks of points and offers them to the
/// lists.
class Worker {
 public:
  Worker(const Request& request, const Kernels& kernels, int exponent,
         const RowSource& points, const PreparedPoints& queries,
         NeighbourLists& lists)
      : request_(request),
        kernels_(kernels),
        rule_(*request.metric, exponent),
        recipe_(what_is_left(recipe_of(request, exponent), points)),
        points_(points),
        queries_(queries),
        self_(self_by_place(request, queries.order)),
        lists_(lists),
        block_(rows_per_block(points.num_features()) * queries.padded) {
    pairs_.resize(static_cast<std::size_t>(queries.size()));
    sums_.resize(pairs_.size());
  }
  void operator()(std::int64_t block) {
    const std::int64_t d = points_.num_features(), padded = queries_.padded;
    const std::int64_t first = block * rows_per_block(d);
    const std::int64_t count =
        std::min(rows_per_block(d), points_.num_points() - first);
    points_.read(first, count, block_.data(), padded);
    auto skip =
        std::lower_bound(request_.skip.begin(), request_.skip.end(), first);
    for (std::int64_t r = 0; r < count; ++r) {
      if (skip != request_.skip.end() && *skip == first + r) {
        ++skip;
        continue;
      }
      meet(r, PointId{static_cast<std::int32_t>(first + r)});
    }
  }

 private:
  void meet(std::int64_t r, PointId point) {
    const MetricEntry& metric = *request_.metric;
    const std::int64_t padded = queries_.padded;
    double* row = block_.data() + r * padded;
    clear_padding(row, queries_.num_features, padded);
    const double sum = kernels_.prepare_row(recipe_, scratch_, row,
                                            queries_.num_features, padded);
    if (recipe_.needs_sums && sum == 0.0) throw RangeFailure();
    for (std::size_t q = 0; q < pairs_.size(); ++q)
      pairs_[q] = {static_cast<std::int32_t>(q), static_cast<std::int32_t>(r)};
    kernels_.exact(metric.accumulation, queries_.rows.data(), block_.data(),
                   padded, pairs_.data(), queries_.size(), sums_.data());
    poll_after(static_cast<double>(queries_.size()) *
               static_cast<double>(padded));
    for (std::int64_t q = 0; q < queries_.size(); ++q) {
      const std::size_t at = static_cast<std::size_t>(q);
      if (!self_.empty() && self_[at] == point.value) continue;
      const double distance = rule_(sums_[at], queries_.sums[q], sum);
      const Place query = {q};
      if (!(distance > lists_.limit(query)))
        lists_.offer(query, distance, point);
    }
  }

  const Request& request_;
  const Kernels& kernels_;
  DistanceRule rule_;
  RowRecipe recipe_;
  const RowSource& points_;
  const PreparedPoints& queries_;
  const std::vector<std::int32_t> self_;
  NeighbourLists& lists_;
  Buffer<double> block_;
  RowScratch scratch_;
  std::vector<Pair> pairs_;
  std::vector<double> sums_;
};

void emit(const Request& request, const Kernels& kernels, int exponent,
          const RowSource& points, const PreparedPoints& queries,
          NeighbourLists& lists, const Neighbours& out) {
  const std::int64_t k = request.k, padded = queries.padded;
  const RowRecipe recipe = what_is_left(recipe_of(request, exponent), points);
  const DistanceRule rule(*request.metric, exponent);
  Buffer<double> row(padded);
  RowScratch scratch;
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const AnswerRow answer_row = AnswerRow::of(i);
    const Place query = {queries.order.place[static_cast<std::size_t>(i)]};
    if (query.none()) {
      emit_missing(out, answer_row, k);
      continue;
    }
    lists.sort(query);
    const double* distance = lists.distances(query);
    const std::int32_t* index = lists.indices(query);
    if (!is_in_range(distance[0]) || !is_in_range(distance[k - 1]))
      throw RangeFailure();
    std::int64_t at = out.at(answer_row, Rank{0});
    for (std::int64_t rank = 0; rank < k; ++rank, at += out.step()) {
      out.index[at] = index[rank] + 1;
      out.distance[at] = distance[rank];
      if (out.correlation == nullptr) continue;
      points.read(index[rank], 1, row.data(), padded);
      clear_padding(row.data(), queries.num_features, padded);
      const double own = kernels.prepare_row(recipe, scratch, row.data(),
                                             queries.num_features, padded);
      const Pair pair = {static_cast<std::int32_t>(query.value), 0};
      double sum = 0.0;
      kernels.exact(Accumulation::dot, queries.rows.data(), row.data(), padded,
                    &pair, 1, &sum);
      poll_after(200.0 + 4.0 * static_cast<double>(padded));
      out.correlation[at] =
          rule.correlation(sum, queries.sums[query.value], own);
    }
  }
}

}  // namespace

bool few_queries(const Request& request, const RowSource* queries) {
  return queries != nullptr && queries->num_points() <= kFew &&
         queries->num_points() * request.k <= kMostKept;
}

void find_for_few(const Request& request, const RowSource& points,
                  const RowSource& queries, const Neighbours& out,
                  Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  tell_chosen(progress, {});
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const int exponent =
      common_exponent(request, points, &queries, request.num_threads);
  const PreparedPoints prepared =
      prepare_points(queries, recipe_of(request, exponent), request.query_skip,
                     false, kernels.prepare_row, 1);
  NeighbourLists lists(prepared.size(), request.k, points.num_points());
  const std::int64_t block_rows = rows_per_block(points.num_features());
  const std::int64_t num_blocks =
      (points.num_points() + block_rows - 1) / block_rows;
  if (prepared.size() > 0)
    run_pieces(num_blocks, request.num_threads, {progress, 0.0, 1.0}, [&] {
      return Worker(request, kernels, exponent, points, prepared, lists);
    });
  const double seconds_search = seconds_since(start);
  emit(request, kernels, exponent, points, prepared, lists, out);
  if (stats == nullptr) return;
  stats->pairs_exact =
      static_cast<double>(prepared.size()) *
      static_cast<double>(points.num_points() -
                          static_cast<std::int64_t>(request.skip.size()));
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
