#include "cpu/engine.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/errors.hpp"
#include "core/pieces.hpp"
#include "cpu/few.hpp"
#include "cpu/filter.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists.hpp"
#include "cpu/masked.hpp"
#include "cpu/rows.hpp"
#include "cpu/turns.hpp"

namespace fsknn {
namespace cpu {
namespace {

// How far the work is, roughly, when rows are prepared, and thresholds seeded.
constexpr double kPrepared = 0.02;
constexpr double kSeeded = 0.05;

/// One search, from prepared rows to lists.
class Search {
 public:
  Search(const Request& request, const Plan& plan, const Kernels& kernels,
         const DistanceRule& rule, const PreparedPoints& rows,
         const PreparedPoints& columns, Progress* progress)
      : request_(request),
        metric_(*request.metric),
        plan_(plan),
        kernels_(kernels),
        rule_(rule),
        rows_(rows),
        columns_(columns),
        symmetric_(&rows == &columns),
        self_(symmetric_ ? std::vector<std::int32_t>()
                         : self_by_place(request, rows.order)),
        progress_(progress),
        scale_(choose_scale(metric_, rule, kernels, columns,
                            symmetric_ ? nullptr : &rows,
                            request.num_threads)),
        thresholds_(scale_, metric_, rule_),
        column_filter_(pack(scale_, columns, plan.padded_points,
                            request.num_threads, progress)),
        lists_(rows.size(), request.k) {
    if (!symmetric_)
      row_filter_storage_ =
          pack(scale_, rows, plan.padded_queries, request.num_threads, progress);
    set_bounds(scale_, row_filter(), column_filter_, columns.padded);
    const std::int64_t places = row_filter().num_places;
    row_threshold_.reset(new std::atomic<std::int32_t>[places]);
    for (std::int64_t p = 0; p < places; ++p)
      row_threshold_[p].store(p < rows.size() ? thresholds_.keep_all()
                                              : thresholds_.keep_none(),
                              std::memory_order_relaxed);
  }

  void run() {
    seed();
    if (symmetric_) {
      const CirculantSchedule schedule(plan_.num_splits, rounds_per_piece());
      run_pieces(
          schedule.num_pieces(), request_.num_threads,
          {progress_, kSeeded, 1.0}, [&] {
            return [&, w = Worker(*this)](std::int64_t at) mutable {
              const CirculantSchedule::Piece piece = schedule.piece(at);
              for (std::int64_t r = piece.first_round; r < piece.end_round; ++r) {
                const std::int64_t column = schedule.column(piece.row, r);
                if (column >= 0) w.chunk(piece.row, column);
              }
            };
          });
    } else {
      run_pieces(plan_.num_splits * plan_.chunks_per_split,
                 request_.num_threads, {progress_, kSeeded, 1.0}, [&] {
                   return [&, w = Worker(*this)](std::int64_t at) mutable {
                     w.chunk(at / plan_.chunks_per_split,
                             at % plan_.chunks_per_split);
                   };
                 });
    }
  }

  /// Few enough that every thread has some 16 pieces of each stretch of rounds,
  /// so that none waits long for the last.
  std::int64_t rounds_per_piece() const {
    const std::int64_t rounds = plan_.num_splits / 2 + 1;
    const std::int64_t pieces = 16 * request_.num_threads;
    return std::max<std::int64_t>(
        1, std::min<std::int64_t>(8, plan_.num_splits * rounds / pieces));
  }

  void emit(const Neighbours& out, bool* out_of_range) {
    std::atomic<bool> beyond{false};
    constexpr std::int64_t kBlock = 64;
    const std::int64_t num_blocks = (out.rows + kBlock - 1) / kBlock;
    run_pieces(num_blocks, request_.num_threads, {progress_, 1.0, 1.0}, [&] {
      return [&, correlations = Correlations(kernels_, rows_, columns_)](
                 std::int64_t block) mutable {
        const std::int64_t last = std::min(out.rows, (block + 1) * kBlock);
        for (std::int64_t i = block * kBlock; i < last; ++i)
          emit_row(out, i, correlations, &beyond);
      };
    });
    *out_of_range = beyond;
  }

  double pairs_filtered() const { return pairs_filtered_; }
  double pairs_exact() const { return pairs_exact_; }

 private:
  FilterRows& row_filter() {
    return symmetric_ ? column_filter_ : row_filter_storage_;
  }

  /// What one thread needs for its chunks.
  class Worker {
   public:
    explicit Worker(Search& search)
        : s_(&search),
          row_threshold_(search.plan_.chunk_size),
          column_threshold_(search.plan_.chunk_size),
          rows_(search.rows_, search.plan_.chunk_size),
          columns_(search.columns_, search.plan_.chunk_size) {
      hits_.reserve(kHits + Tile::rows * Tile::columns);
      sums_.resize(kHits + Tile::rows * Tile::columns);
    }
    Worker(Worker&&) = default;
    ~Worker() {
      if (s_ == nullptr) return;
#pragma omp critical(fsknn_counts)
      {
        s_->pairs_filtered_ += pairs_filtered_;
        s_->pairs_exact_ += pairs_exact_;
      }
    }

    /// All pairs of a chunk: filter, exact, select.
    void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
      const std::int64_t size = s_->plan_.chunk_size;
      const std::int64_t row0 = row_chunk * size, column0 = column_chunk * size;
      const std::int64_t num_rows =
          std::min(size, s_->rows_.size() - row0);
      const std::int64_t num_columns =
          std::min(size, s_->columns_.size() - column0);
      if (num_rows <= 0 || num_columns <= 0) return;
      diagonal_ = s_->symmetric_ && row_chunk == column_chunk;
      rows_.move_to(row0);
      columns_.move_to(column0);
      copy_thresholds(row0, num_rows, row_threshold_);
      if (s_->symmetric_)
        copy_thresholds(column0, num_columns, column_threshold_);
      else
        std::fill_n(column_threshold_.data(), size,
                    s_->thresholds_.keep_none());

      const FilterRows& a = s_->row_filter();
      const FilterRows& b = s_->column_filter_;
      for (std::int64_t c = 0; c < num_columns; c += Tile::columns) {
        const int panels = static_cast<int>(
            (std::min<std::int64_t>(Tile::columns, num_columns - c) +
             Tile::panel - 1) /
            Tile::panel);
        const std::int32_t* b_panels = b.panel(column0 + c);
        for (std::int64_t r = 0; r < num_rows; r += Tile::rows) {
          // Below the diagonal: met from the other side.
          if (diagonal_ && r >= c + Tile::columns) break;
          const std::int64_t row = row0 + r;
          s_->kernels_.accumulate(
              s_->scale_.product, a.row(row), b_panels, panels, a.steps, tile_);
          std::uint64_t keep[Tile::rows];
          s_->kernels_.test(s_->scale_.test, tile_, panels,
                            a.side(row_threshold_.data() + r, row),
                            b.side(column_threshold_.data() + c, column0 + c),
                            keep);
          collect(keep, r, c, num_rows, num_columns);
          if (hits_.size() >= kHits) settle(row0, column0);
          poll_after(tile_cost(a.steps));
        }
      }
      settle(row0, column0);
      pairs_filtered_ += static_cast<double>(num_rows) *
                         static_cast<double>(num_columns) *
                         (diagonal_ ? 0.5 : 1.0);
    }

   private:
    static constexpr std::size_t kHits = 2048;

    void copy_thresholds(std::int64_t place0, std::int64_t count,
                         Buffer<std::int32_t>& to) {
      for (std::int64_t p = 0; p < count; ++p)
        to[p] = s_->row_threshold_[place0 + p].load(std::memory_order_relaxed);
      std::fill(to.data() + count, to.data() + to.size(),
                s_->thresholds_.keep_none());
    }

    /// Hits are numbered within the chunk.
    void collect(const std::uint64_t* keep, std::int64_t row,
                 std::int64_t column, std::int64_t num_rows,
                 std::int64_t num_columns) {
      for (int r = 0; r < Tile::rows; ++r) {
        for (std::uint64_t mask = keep[r]; mask != 0; mask &= mask - 1) {
          const Pair pair = {
              static_cast<std::int32_t>(row + r),
              static_cast<std::int32_t>(column + __builtin_ctzll(mask))};
          if (pair.row >= num_rows || pair.column >= num_columns ||
              (diagonal_ && pair.row >= pair.column))
            continue;
          hits_.push_back(pair);
        }
      }
    }

    /// Exact distances of the hits so far, offered to their lists.
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
      for (std::size_t h = 0; h < hits_.size(); ++h) {
        const Pair hit = hits_[h];
        const std::int64_t row = row0 + hit.row, column = column0 + hit.column;
        const double distance =
            s_->rule_(sums_[h], rows.sums[row], columns.sums[column]);
        const std::int32_t other =
            columns.order.id[static_cast<std::size_t>(column)];
        if (other != s_->self_of(row) && s_->offer(row, distance, other))
          row_threshold_[hit.row] =
              s_->row_threshold_[row].load(std::memory_order_relaxed);
        if (s_->symmetric_ &&
            s_->offer(column, distance,
                      rows.order.id[static_cast<std::size_t>(row)]))
          column_threshold_[hit.column] =
              s_->row_threshold_[column].load(std::memory_order_relaxed);
      }
      pairs_exact_ += static_cast<double>(hits_.size());
      hits_.clear();
    }

    Search* s_;
    Buffer<std::int32_t> row_threshold_, column_threshold_;
    ChunkRows rows_, columns_;
    std::vector<Pair> hits_;
    std::vector<double> sums_;
    alignas(64) std::int32_t tile_[Tile::rows * Tile::columns];
    bool diagonal_ = false;
    double pairs_filtered_ = 0, pairs_exact_ = 0;
  };

  /// The point that a query is; -1: none.
  std::int32_t self_of(std::int64_t row) const {
    return self_.empty() ? -1 : self_[static_cast<std::size_t>(row)];
  }

  bool offer(std::int64_t row, double distance, std::int32_t index) {
    if (distance > lists_.limit(row) ||
        !lists_.offer(row, distance, index))
      return false;
    set_threshold(row);
    return true;
  }

  void set_threshold(std::int64_t row) {
    row_threshold_[row].store(thresholds_.keep_up_to(lists_.limit(row)),
                              std::memory_order_relaxed);
  }

  /// A first threshold for every row: k points of another chunk are at most
  /// that far. The points of a chunk are a random sample of all.
  void seed();
  /// Points to have seen for k that count: a query may be one of them itself.
  std::int64_t seeds() const { return request_.k + (self_.empty() ? 0 : 1); }
  void seed_split(std::int64_t split, std::int64_t num_samples, int num_groups,
                  std::vector<float>& best);

  void emit_row(const Neighbours& out, std::int64_t i,
                Correlations& correlations, std::atomic<bool>* beyond) {
    const std::int64_t k = request_.k;
    const std::int32_t place = rows_.order.place[static_cast<std::size_t>(i)];
    if (place < 0) {
      emit_missing(out, i, k);
      return;
    }
    NeighbourHeap list = lists_.heap(place);
    // Never so, by the proof; but never garbage either.
    if (!list.full()) throw std::logic_error("a list of neighbours is not full");
    list.sort();
    const double* distance = lists_.distances(place);
    const std::int32_t* index = lists_.indices(place);
    if (!(distance[k - 1] < HUGE_VAL)) *beyond = true;
    const std::int64_t first = out.at(i, 0), step = out.step();
    for (std::int64_t rank = 0; rank < k; ++rank) {
      out.index[first + rank * step] = index[rank] + 1;
      out.distance[first + rank * step] = distance[rank];
    }
    if (out.correlation == nullptr) return;
    const double* r = correlations(place, index, k);
    for (std::int64_t rank = 0; rank < k; ++rank)
      out.correlation[first + rank * step] = r[rank];
  }

  const Request& request_;
  const MetricEntry& metric_;
  const Plan& plan_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  const PreparedPoints& rows_;
  const PreparedPoints& columns_;
  const bool symmetric_;
  const std::vector<std::int32_t> self_;
  Progress* progress_;
  FilterScale scale_;
  Thresholds thresholds_;
  FilterRows column_filter_;
  FilterRows row_filter_storage_;
  NeighbourLists lists_;
  std::unique_ptr<std::atomic<std::int32_t>[]> row_threshold_;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
};

void Search::seed() {
  const std::int64_t size = plan_.chunk_size, k = seeds();
  const std::int64_t full_chunks = columns_.size() / size;
  const std::int64_t others = full_chunks - (symmetric_ ? 1 : 0);
  if (others < 1) return;
  // With m points seen beforehand, about k log(n / m) pairs a row pass the
  // filter until its list is final. Where m is k times the price of such a pair
  // (some 200 cycles) over that of a filtered one, one more would cost as much
  // as it saves.
  const double filtered_pair =
      (static_cast<double>(column_filter_.steps) / 2 + 6) / 16;
  const std::int64_t wanted = static_cast<std::int64_t>(
      200.0 * static_cast<double>(k) / filtered_pair /
          static_cast<double>(size) + 1.0);
  const std::int64_t num_samples = std::max<std::int64_t>(
      1, std::min({wanted, others, full_chunks / 4}));
  const std::int64_t num_panels = num_samples * size / Tile::panel;
  const int num_groups = static_cast<int>(std::min<std::int64_t>(
      num_panels, (2 * k + Tile::panel - 1) / Tile::panel));
  // The k-th smallest of the groups' minima must exist, with room to spare.
  if (num_groups * Tile::panel < k + k / 2) return;
  run_pieces(plan_.num_splits, request_.num_threads,
             {progress_, kPrepared, kSeeded}, [&] {
               return [&, best = std::vector<float>()](
                          std::int64_t split) mutable {
                 seed_split(split, num_samples, num_groups, best);
               };
             });
}

void Search::seed_split(std::int64_t split, std::int64_t num_samples,
                        int num_groups, std::vector<float>& best) {
  const std::int64_t size = plan_.chunk_size;
  const std::int64_t row0 = split * size;
  const std::int64_t num_rows = std::min(size, rows_.size() - row0);
  const std::int64_t full_chunks = columns_.size() / size;
  const std::size_t width =
      static_cast<std::size_t>(num_groups) * Tile::panel;
  best.assign(static_cast<std::size_t>(size) * width,
              std::numeric_limits<float>::infinity());
  alignas(64) std::int32_t tile[Tile::rows * Tile::columns];
  const FilterRows& a = row_filter();
  int group = 0;
  for (std::int64_t m = 0, chunk = split; m < num_samples; ++m) {
    do {
      chunk = (chunk + 1) % full_chunks;
    } while (symmetric_ && chunk == split);
    for (std::int64_t c = 0; c < size; c += Tile::columns) {
      const std::int64_t column = chunk * size + c;
      for (std::int64_t r = 0; r < num_rows; r += Tile::rows) {
        const std::int64_t row = row0 + r;
        kernels_.accumulate(scale_.product, a.row(row),
                            column_filter_.panel(column), Tile::panels,
                            a.steps, tile);
        for (std::int64_t q = 0; q < Tile::rows && r + q < num_rows; ++q)
          kernels_.lower_best(
              scale_.test, tile + q * Tile::columns, Tile::panels,
              a.upper_side(row + q), column_filter_.upper_side(column), group,
              num_groups, best.data() + static_cast<std::size_t>(r + q) * width);
        poll_after(tile_cost(a.steps));
      }
      group = (group + Tile::panels) % num_groups;
    }
  }
  for (std::int64_t r = 0; r < num_rows; ++r) {
    float* keys = best.data() + static_cast<std::size_t>(r) * width;
    std::nth_element(keys, keys + (seeds() - 1), keys + width);
    const double limit = thresholds_.upper_distance(
        keys[seeds() - 1], a.upper_side(row0 + r));
    lists_.set_limit(row0 + r, limit);
    set_threshold(row0 + r);
  }
}

}  // namespace

void find_neighbours(const Request& asked, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  if (asked.na_pairwise)
    return find_masked(asked, points, queries, out, progress, stats);
  const Clock::time_point start = Clock::now();
  const Kernels& kernels = choose_kernels(asked.instruction_set);
  const MetricEntry& metric = *asked.metric;
  const double rows_asked = static_cast<double>(
      queries != nullptr ? queries->num_points() : points.num_points());
  // The filter does some 16 products in one instruction.
  const int threads = useful_threads(
      asked.num_threads, rows_asked * static_cast<double>(points.num_points()) *
                             static_cast<double>(points.num_features()) / 16);
  Request request = asked;
  request.num_threads = threads;
  const int exponent = common_exponent(asked, points, queries, threads);
  if (few_queries(request, queries))
    return find_for_few(request, kernels, exponent, points, *queries, out,
                        progress, stats);
  const DistanceRule rule(metric, exponent);
  const PreparedPoints columns =
      prepare_points(points, metric, exponent, request.skip, true,
                     kernels.prepare_row, threads, progress, false);
  PreparedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_points(*queries, metric, exponent, request.query_skip,
                              false, kernels.prepare_row, threads, progress,
                              false);
  const PreparedPoints& rows = queries != nullptr ? own_rows : columns;

  PlanInput input;
  input.num_points = columns.size();
  input.num_features = columns.num_features;
  input.num_queries = queries != nullptr ? rows.size() : 0;
  input.k = request.k;
  input.chunk_size = request.chunk_size;
  input.num_workers = threads;
  input.elementwise = metric.is_elementwise();
  input.rows_made = points.made_when_read();
  const Plan plan = plan_cpu(input);

  bool out_of_range = false;
  if (rows.size() == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, i, request.k);
    return;
  }
  Search search(request, plan, kernels, rule, rows, columns, progress);
  const double seconds_prepare = seconds_since(start);
  search.run();
  const double seconds_search = seconds_since(start) - seconds_prepare;
  search.emit(out, &out_of_range);
  if (out_of_range) throw RangeFailure();
  if (stats != nullptr) {
    stats->pairs_filtered = search.pairs_filtered();
    stats->filtered = stats->pairs_filtered > 0;
    stats->pairs_exact = search.pairs_exact();
    stats->seconds_prepare = seconds_prepare;
    stats->seconds_search = seconds_search;
    stats->seconds_emit =
        seconds_since(start) - seconds_prepare - seconds_search;
  }
}

int num_processors() {
#ifdef _OPENMP
  return std::max(1, omp_get_num_procs());
#else
  return 1;
#endif
}

}  // namespace cpu
}  // namespace fsknn
