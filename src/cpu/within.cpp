#include "cpu/within.hpp"

#include <algorithm>
#include <vector>

#include "core/pieces.hpp"
#include "core/plan.hpp"
#include "cpu/filter.hpp"
#include "cpu/hits.hpp"
#include "cpu/kernels.hpp"
#include "cpu/masked_within.hpp"
#include "cpu/rows.hpp"
#include "cpu/turns.hpp"

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
        rows_(rows),
        columns_(columns),
        symmetric_(&rows == &columns),
        progress_(progress),
        scale_(choose_scale(metric_, rule, kernels, columns,
                            symmetric_ ? nullptr : &rows,
                            request.num_threads)),
        column_filter_(pack(scale_, columns, plan.padded_points,
                            request.num_threads, progress)) {
    if (!symmetric_)
      row_filter_storage_ = pack(scale_, rows, plan.padded_queries,
                                 request.num_threads, progress);
    set_bounds(scale_, row_filter(), column_filter_, columns.padded);
    set_thresholds(within);
  }

  void run(WithinCollector& collector, double from, double to) {
    const Stretch stretch = {progress_, from, to};
    if (!symmetric_) {
      run_pieces(plan_.num_splits * plan_.chunks_per_split,
                 request_.num_threads, stretch, [&] {
                   return [&, w = Worker(*this, collector)](
                              std::int64_t at) mutable {
                     w.chunk(at / plan_.chunks_per_split,
                             at % plan_.chunks_per_split);
                   };
                 });
      return;
    }
    const CirculantSchedule schedule(plan_.num_splits, 1);
    run_pieces(schedule.num_pieces(), request_.num_threads, stretch, [&] {
      return [&, w = Worker(*this, collector)](std::int64_t at) mutable {
        const CirculantSchedule::Piece piece = schedule.piece(at);
        const std::int64_t column =
            schedule.column(piece.row, piece.first_round);
        if (column >= 0) w.chunk(piece.row, column);
      };
    });
  }

  double pairs_filtered() const { return pairs_filtered_; }
  double pairs_exact() const { return pairs_exact_; }

 private:
  FilterRows& row_filter() {
    return symmetric_ ? column_filter_ : row_filter_storage_;
  }

  void set_thresholds(const Within& within) {
    const Thresholds thresholds(scale_, metric_, rule_);
    const std::int64_t places = row_filter().num_places;
    row_threshold_ = Buffer<std::int32_t>(places);
    std::fill_n(row_threshold_.data(), places, thresholds.keep_none());
    for (std::int64_t p = 0; p < rows_.size(); ++p)
      row_threshold_[p] = thresholds.keep_up_to(
          within.limit(rows_.order.id[static_cast<std::size_t>(p)]));
    if (symmetric_) return;
    column_threshold_ = Buffer<std::int32_t>(column_filter_.num_places);
    std::fill_n(column_threshold_.data(), column_filter_.num_places,
                thresholds.keep_none());
  }

  class Worker {
   public:
    Worker(WithinSearch& search, WithinCollector& collector)
        : s_(&search),
          taker_(collector),
          rows_(search.rows_, search.plan_.chunk_size),
          columns_(search.columns_, search.plan_.chunk_size) {
      hits_.reserve(kHits + Tile::rows * Tile::columns);
      sums_.resize(kHits + Tile::rows * Tile::columns);
    }
    Worker(Worker&& other) noexcept = default;
    ~Worker() {
      if (hits_.capacity() == 0) return;
#pragma omp critical(fsknn_within_counts)
      {
        s_->pairs_filtered_ += pairs_filtered_;
        s_->pairs_exact_ += pairs_exact_;
      }
    }

    void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
      const std::int64_t size = s_->plan_.chunk_size;
      const std::int64_t row0 = row_chunk * size, column0 = column_chunk * size;
      const std::int64_t num_rows = std::min(size, s_->rows_.size() - row0);
      const std::int64_t num_columns =
          std::min(size, s_->columns_.size() - column0);
      if (num_rows <= 0 || num_columns <= 0) return;
      const bool diagonal = s_->symmetric_ && row_chunk == column_chunk;
      rows_.move_to(row0);
      columns_.move_to(column0);
      const FilterRows& a = s_->row_filter();
      const FilterRows& b = s_->column_filter_;
      const std::int32_t* const of_columns =
          (s_->symmetric_ ? s_->row_threshold_ : s_->column_threshold_).data();
      for (std::int64_t c = 0; c < num_columns; c += Tile::columns) {
        const std::int64_t column = column0 + c;
        const int panels = static_cast<int>(
            (std::min<std::int64_t>(Tile::columns, num_columns - c) +
             Tile::panel - 1) /
            Tile::panel);
        for (std::int64_t r = 0; r < num_rows; r += Tile::rows) {
          // Below the diagonal: met from the other side.
          if (diagonal && r >= c + Tile::columns) break;
          const std::int64_t row = row0 + r;
          s_->kernels_.accumulate(s_->scale_.product, a.row(row),
                                  b.panel(column), panels, a.steps, tile_);
          std::uint64_t keep[Tile::rows];
          s_->kernels_.test(s_->scale_.test, tile_, panels,
                            a.side(s_->row_threshold_.data() + row, row),
                            b.side(of_columns + column, column), keep);
          collect_hits(keep, r, c, num_rows, num_columns, diagonal, hits_);
          if (hits_.size() >= kHits) settle(row0, column0);
          poll_after(tile_cost(a.steps));
        }
      }
      settle(row0, column0);
      pairs_filtered_ += static_cast<double>(num_rows) *
                         static_cast<double>(num_columns) *
                         (diagonal ? 0.5 : 1.0);
    }

   private:
    static constexpr std::size_t kHits = 2048;

    void settle(std::int64_t row0, std::int64_t column0) {
      if (hits_.empty()) return;
      const PreparedPoints& rows = s_->rows_;
      const PreparedPoints& columns = s_->columns_;
      for (const Pair& hit : hits_) {
        rows_.need(hit.row);
        columns_.need(hit.column);
        poll_after(10.0);
      }
      exact_in_turns(s_->kernels_, s_->metric_.accumulation, rows_.rows(),
                     columns_.rows(), columns.padded, hits_.data(),
                     static_cast<std::int64_t>(hits_.size()), sums_.data());
      const bool unit_dot = s_->metric_.is_unit_dot();
      for (std::size_t h = 0; h < hits_.size(); ++h) {
        const std::int64_t row = row0 + hits_[h].row;
        const std::int64_t column = column0 + hits_[h].column;
        const double value =
            unit_dot ? sums_[h]
                     : s_->rule_(sums_[h], rows.sums[row],
                                 columns.sums[column]);
        taker_.take(rows.order.id[static_cast<std::size_t>(row)],
                    columns.order.id[static_cast<std::size_t>(column)], value);
      }
      pairs_exact_ += static_cast<double>(hits_.size());
      hits_.clear();
    }

    WithinSearch* s_;
    WithinCollector::Taker taker_;
    ChunkRows rows_, columns_;
    std::vector<Pair> hits_;
    std::vector<double> sums_;
    alignas(64) std::int32_t tile_[Tile::rows * Tile::columns];
    double pairs_filtered_ = 0, pairs_exact_ = 0;
  };

  const Request& request_;
  const MetricEntry& metric_;
  const Plan& plan_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  const PreparedPoints& rows_;
  const PreparedPoints& columns_;
  const bool symmetric_;
  Progress* progress_;
  FilterScale scale_;
  FilterRows column_filter_;
  FilterRows row_filter_storage_;
  /// [places]; queries alone have their own: points let no pair pass.
  Buffer<std::int32_t> row_threshold_, column_threshold_;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
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
  stats->pairs_filtered = search.pairs_filtered();
  stats->filtered = true;
  stats->pairs_exact = search.pairs_exact();
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
