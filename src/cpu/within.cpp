#include "cpu/within.hpp"

#include <algorithm>
#include <vector>

#include "core/pieces.hpp"
#include "core/plan.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/kernels.hpp"
#include "cpu/masked_within.hpp"
#include "cpu/pass.hpp"
#include "cpu/prepared_pairs.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// One pass over all pairs, or more: those that the filter lets through at the
/// limits' thresholds go to the collector with their exact sums.
class WithinSearch {
 public:
  WithinSearch(const Request& request, const Within& within, const Plan& plan,
               const Kernels& kernels, const DistanceRule& rule,
               const PreparedPoints& rows, const PreparedPoints& columns,
               Progress* progress)
      : request_(request),
        metric_(*request.metric),
        plan_(plan),
        kernels_(kernels),
        rule_(rule),
        symmetric_(&rows == &columns),
        progress_(progress),
        scale_(choose_scale(metric_, rule, kernels, columns,
                            symmetric_ ? nullptr : &rows,
                            request.num_threads)),
        column_filter_(
            pack(scale_, columns, request.num_threads, progress)) {
    double error = column_filter_.error;
    if (!symmetric_) {
      own_row_filter_ = pack(scale_, rows, request.num_threads, progress);
      error = std::max(error, own_row_filter_.error);
    }
    set_slack(scale_, error, columns.padded);
    complete(scale_, column_filter_);
    if (!symmetric_) complete(scale_, own_row_filter_);
    columns_.points = &columns;
    columns_.filter = &column_filter_;
    rows_.points = &rows;
    rows_.filter = symmetric_ ? &column_filter_ : &own_row_filter_;
    const Thresholds thresholds(scale_, metric_, rule_);
    keep_none_ = thresholds.keep_none();
    threshold_ = Buffer<std::int32_t>(rows.size());
    for (std::int64_t p = 0; p < rows.size(); ++p)
      threshold_[p] = thresholds.keep_up_to(within.limit(rows_.id(p)));
  }

  void run(WithinCollector& collector, double from, double to) {
    const ChunkGrid grid = {plan_.num_splits, plan_.chunks_per_split,
                            symmetric_};
    counts_.add(
        run_pass(grid, request_.num_threads, {progress_, from, to}, [&] {
          return ChunkPass<PreparedPairs, Sink>(
              plan_.chunk_size, symmetric_,
              [&] {
                return PreparedPairs(kernels_, metric_.accumulation, scale_,
                                     rows_, columns_, plan_.chunk_size);
              },
              [&] { return Sink(*this, collector); });
        }));
  }

  const PassCounts& counts() const { return counts_; }

 private:
  class Sink : public SinkDefaults {
   public:
    static constexpr std::size_t kHits = 2048;

    Sink(const WithinSearch& search, WithinCollector& collector)
        : s_(search),
          unit_dot_(search.metric_.is_unit_dot()),
          taker_(collector) {}

    bool enter(const Chunk& at, std::int32_t* row_threshold,
               std::int32_t* column_threshold) {
      at_ = at;
      fill(at.row0, at.num_rows, row_threshold);
      // Queries alone have limits: points let no pair pass.
      fill(at.column0, s_.symmetric_ ? at.num_columns : 0, column_threshold);
      return true;
    }

    void take(const Pair& hit, double sum) {
      const std::int64_t row = at_.row0 + hit.row;
      const std::int64_t column = at_.column0 + hit.column;
      const double value =
          unit_dot_ ? sum
                    : s_.rule_(sum, s_.rows_.points->sums[row],
                               s_.columns_.points->sums[column]);
      taker_.take(s_.rows_.id(row), s_.columns_.id(column), value);
    }

   private:
    void fill(std::int64_t place0, std::int64_t count, std::int32_t* to) {
      std::fill_n(to, s_.plan_.chunk_size, s_.keep_none_);
      if (count > 0) std::copy_n(s_.threshold_.data() + place0, count, to);
    }

    const WithinSearch& s_;
    const bool unit_dot_;
    WithinCollector::Taker taker_;
    Chunk at_ = {};
  };

  const Request& request_;
  const MetricEntry& metric_;
  const Plan& plan_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  const bool symmetric_;
  Progress* progress_;
  FilterScale scale_;
  FilterRows column_filter_, own_row_filter_;
  PointBlock rows_, columns_;
  std::int32_t keep_none_;
  Buffer<std::int32_t> threshold_;  ///< [places of the rows]
  PassCounts counts_;
};

}  // namespace

void find_within(const Request& asked, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats) {
  if (asked.na_pairwise)
    return find_masked_within(asked, within, points, queries, answer, progress,
                              stats);
  const Clock::time_point start = Clock::now();
  const Kernels& kernels = choose_kernels(asked.instruction_set);
  const MetricEntry& metric = *asked.metric;
  const RowSource& asked_for = queries != nullptr ? *queries : points;
  Request request = asked;
  request.num_threads = useful_threads(
      asked.num_threads, static_cast<double>(asked_for.num_points()) *
                             static_cast<double>(points.num_points()) *
                             static_cast<double>(points.num_features()) / 16);
  check_sample(request, within, points, queries);
  const int exponent =
      common_exponent(asked, points, queries, request.num_threads);
  const DistanceRule rule(metric, exponent);
  const RowRecipe recipe = recipe_of(request, exponent);
  const PreparedPoints columns =
      prepare_points(points, recipe, request.skip, true,
                     kernels.prepare_row, request.num_threads, progress, false);
  PreparedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_points(*queries, recipe, request.query_skip, false,
                              kernels.prepare_row, request.num_threads,
                              progress, false);
  const PreparedPoints& rows = queries != nullptr ? own_rows : columns;
  WithinCollector collector(request, within, asked_for.num_points(),
                            queries == nullptr);
  if (rows.size() == 0 || columns.size() == 0) {
    collector.allocate(answer);
    return;
  }

  PlanInput input = plan_input(request, columns.size(), columns.num_features,
                               queries != nullptr ? rows.size() : 0);
  input.k = 1;
  input.rows_made = !columns.held();
  const Plan plan = plan_cpu(input);
  WithinSearch search(request, within, plan, kernels, rule, rows, columns,
                      progress);
  const double seconds_prepare = seconds_since(start);
  search.run(collector, 0.0, 0.5);
  if (!collector.allocate(answer)) search.run(collector, 0.5, 1.0);
  const double seconds_search = seconds_since(start) - seconds_prepare;
  collector.finish();
  if (stats == nullptr) return;
  stats->pairs_filtered = search.counts().filtered;
  stats->filtered = asked.metric->filter != FilterKind::none;
  stats->pairs_exact = search.counts().exact;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
