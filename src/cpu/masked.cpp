#include "cpu/masked.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/masked.hpp"
#include "core/masked_points.hpp"
#include "core/pieces.hpp"
#include "core/plan.hpp"
#include "core/prepared.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists.hpp"
#include "cpu/masked_filter.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr float kKeepAll = -std::numeric_limits<float>::infinity();
constexpr float kKeepNone = std::numeric_limits<float>::infinity();
// As few queries as are met by the exact step alone.
constexpr std::int64_t kFew = 16;

/// One search among points with missing values: as the engine's (engine.cpp),
/// with thresholds in similarity, and lists that may stay short.
class MaskedSearch {
 public:
  MaskedSearch(const Request& request, const Plan& plan, const Kernels& kernels,
               const MaskedPoints& rows, const MaskedPoints& columns,
               bool filtered, Progress* progress)
      : request_(request),
        plan_(plan),
        kernels_(kernels),
        rows_(rows),
        columns_(columns),
        symmetric_(&rows == &columns),
        self_(self_by_place(request, rows.order)),
        filtered_(filtered),
        progress_(progress),
        lists_(rows.size(), request.k),
        threshold_(new std::atomic<float>[static_cast<std::size_t>(
            plan.padded_queries)]) {
    for (std::int64_t p = 0; p < plan.padded_queries; ++p)
      threshold_[static_cast<std::size_t>(p)].store(
          p < rows.size() ? kKeepAll : kKeepNone, std::memory_order_relaxed);
    if (!filtered) return;
    const MissingClasses classes =
        missing_classes(columns, symmetric_ ? nullptr : &rows);
    column_filter_ = pack_masked(columns, classes, plan.padded_points,
                                 request.min_pairs, request.num_threads,
                                 progress);
    if (!symmetric_)
      row_filter_ = pack_masked(rows, classes, plan.padded_queries,
                                request.min_pairs, request.num_threads,
                                progress);
  }

  void run() {
    const auto go = [&](std::int64_t num_pieces, auto chunks_of) {
      run_pieces(num_pieces, request_.num_threads, {progress_, 0.05, 1.0}, [&] {
        return [&, w = Worker(*this)](std::int64_t at) mutable {
          chunks_of(w, at);
        };
      });
    };
    if (!symmetric_) {
      go(plan_.num_splits * plan_.chunks_per_split,
         [&](Worker& w, std::int64_t at) {
           w.chunk(at / plan_.chunks_per_split, at % plan_.chunks_per_split);
         });
      return;
    }
    const CirculantSchedule schedule(plan_.num_splits, 1);
    go(schedule.num_pieces(), [&](Worker& w, std::int64_t at) {
      const CirculantSchedule::Piece piece = schedule.piece(at);
      const std::int64_t column = schedule.column(piece.row, piece.first_round);
      if (column >= 0) w.chunk(piece.row, column);
    });
  }

  /// Returns how many rows have fewer than k neighbours.
  double emit(const Neighbours& out) {
    std::atomic<std::int64_t> rows_short{0};
    constexpr std::int64_t block_rows = 64;
    run_pieces((out.rows + block_rows - 1) / block_rows, request_.num_threads,
               {progress_, 1.0, 1.0}, [&] {
      return [&, r = std::vector<double>()](std::int64_t block) mutable {
        const std::int64_t last =
            std::min(out.rows, (block + 1) * block_rows);
        for (std::int64_t i = block * block_rows; i < last; ++i)
          rows_short += emit_row(out, i, r);
      };
    });
    return static_cast<double>(rows_short);
  }

  double pairs_filtered() const { return pairs_filtered_; }
  double pairs_exact() const { return pairs_exact_; }

 private:
  const MaskedFilterRows& row_filter() const {
    return symmetric_ ? column_filter_ : row_filter_;
  }

  class Worker {
   public:
    explicit Worker(MaskedSearch& search) : s_(&search) {
      hits_.reserve(kHits);
      r_.resize(hits_.capacity());
      row_threshold_.resize(static_cast<std::size_t>(s_->plan_.chunk_size));
      column_threshold_.resize(row_threshold_.size());
    }
    Worker(Worker&& other) noexcept
        : s_(std::exchange(other.s_, nullptr)),
          row_threshold_(std::move(other.row_threshold_)),
          column_threshold_(std::move(other.column_threshold_)),
          hits_(std::move(other.hits_)),
          r_(std::move(other.r_)) {}
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
      row0_ = row_chunk * size;
      column0_ = column_chunk * size;
      num_rows_ = std::min(size, s_->rows_.size() - row0_);
      num_columns_ = std::min(size, s_->columns_.size() - column0_);
      if (num_rows_ <= 0 || num_columns_ <= 0) return;
      diagonal_ = s_->symmetric_ && row_chunk == column_chunk;
      copy_thresholds(row0_, num_rows_, row_threshold_);
      if (s_->symmetric_)
        copy_thresholds(column0_, num_columns_, column_threshold_);
      else
        std::fill(column_threshold_.begin(), column_threshold_.end(),
                  kKeepNone);
      if (s_->filtered_)
        filter();
      else
        take_all();
      settle();
    }

   private:
    static constexpr std::size_t kHits = 2048;

    void copy_thresholds(std::int64_t place0, std::int64_t count,
                         std::vector<float>& to) {
      std::fill(to.begin(), to.end(), kKeepNone);
      for (std::int64_t p = 0; p < count; ++p)
        to[static_cast<std::size_t>(p)] = s_->threshold(place0 + p);
    }

    void take_all() {
      for (std::int64_t r = 0; r < num_rows_; ++r)
        for (std::int64_t c = diagonal_ ? r + 1 : 0; c < num_columns_; ++c)
          take(r, c);
    }

    void take(std::int64_t row, std::int64_t column) {
      hits_.push_back({static_cast<std::int32_t>(row),
                       static_cast<std::int32_t>(column)});
      if (hits_.size() >= kHits) settle();
    }

    void filter() {
      const MaskedFilterRows& a = s_->row_filter();
      const MaskedFilterRows& b = s_->column_filter_;
      for (std::int64_t c = 0; c < num_columns_; c += Tile::columns) {
        const int panels = static_cast<int>(
            (std::min<std::int64_t>(Tile::columns, num_columns_ - c) +
             Tile::panel - 1) / Tile::panel);
        for (std::int64_t r = 0; r < num_rows_; r += CommonTile::rows) {
          // Below the diagonal: met from the other side.
          if (diagonal_ && r >= c + Tile::columns) break;
          for (int half = 0; half < CommonTile::rows; half += Tile::rows)
            s_->kernels_.accumulate(
                Product::dot, a.row(row0_ + r + half), b.panel(column0_ + c),
                panels, a.steps, tile_ + half * Tile::columns);
          if (test(r, c, panels)) refine(r, c, panels);
        }
      }
      pairs_filtered_ += static_cast<double>(num_rows_) *
                         static_cast<double>(num_columns_) *
                         (diagonal_ ? 0.5 : 1.0);
    }

    /// Step 1 of a tile of 16 rows, to keep_; whether any pair is left.
    bool test(std::int64_t row, std::int64_t column, int panels) {
      const MaskedFilterRows& a = s_->row_filter();
      const MaskedFilterRows& b = s_->column_filter_;
      const std::int64_t i0 = row0_ + row, j0 = column0_ + column;
      const std::int64_t row_class = a.panel_class[i0 / Tile::panel];
      std::int64_t column_class = 0;
      for (int p = 0; p < panels; ++p)
        column_class = std::max<std::int64_t>(
            column_class, b.panel_class[j0 / Tile::panel + p]);
      const std::int64_t at = row_class * b.num_places + j0;
      const MaskedSide columns = {
          column_threshold_.data() + static_cast<std::size_t>(column),
          b.error.data() + j0, b.alpha.data() + at, b.w.data() + at};
      const float unit = static_cast<float>(masked_unit());
      std::uint64_t any = 0;
      for (int r = 0; r < CommonTile::rows; ++r) {
        keep_[r] = 0;
        if (row + r >= num_rows_) continue;
        const std::int64_t own = column_class * a.num_places + i0 + r;
        const MaskedSide side = {
            row_threshold_.data() + static_cast<std::size_t>(row + r),
            a.error.data() + i0 + r, a.alpha.data() + own, a.w.data() + own};
        keep_[r] = s_->kernels_.masked_test(
            s_->request_.metric->sign, tile_ + r * Tile::columns, panels, unit,
            side, columns);
        any |= keep_[r];
      }
      return any != 0;
    }

    /// Step 2 of a tile.
    void refine(std::int64_t row, std::int64_t column, int panels) {
      const MaskedFilterRows& a = s_->row_filter();
      const MaskedFilterRows& b = s_->column_filter_;
      const std::int64_t i0 = row0_ + row, j0 = column0_ + column;
      const std::int64_t width = num_columns_ - column;
      const std::uint64_t there =
          width < 64 ? (std::uint64_t{1} << width) - 1 : ~std::uint64_t{0};
      std::uint64_t columns_kept = 0;
      for (int r = 0; r < CommonTile::rows; ++r) {
        keep_[r] &= there;
        columns_kept |= keep_[r];
        if (keep_[r] != 0)
          sum_of_columns(s_->kernels_, a, i0 + r, b, j0, panels, common_.b[r],
                         common_.y[r]);
      }
      for (; columns_kept != 0; columns_kept &= columns_kept - 1) {
        const int c = __builtin_ctzll(columns_kept);
        sum_of_rows(s_->kernels_, a, i0, b, j0 + c, common_.a[c], common_.x[c]);
      }
      for (int r = 0; r < CommonTile::rows; ++r)
        for (std::uint64_t mask = keep_[r]; mask != 0; mask &= mask - 1) {
          const int c = __builtin_ctzll(mask);
          if (!(diagonal_ && row + r >= column + c))
            refine_pair(row + r, column + c, r, c);
        }
    }

    void refine_pair(std::int64_t row, std::int64_t column, int r, int c) {
      const float t = std::min(row_threshold_[static_cast<std::size_t>(row)],
                               column_threshold_[static_cast<std::size_t>(
                                   column)]);
      const MaskedPair pair = {
          row0_ + row,     column0_ + column, tile_[r * Tile::columns + c],
          common_.a[c][r], common_.x[c][r],   common_.b[r][c],
          common_.y[r][c]};
      if (may_be_near(s_->row_filter(), s_->column_filter_, pair,
                      s_->request_.metric->sign, s_->request_.min_pairs, t))
        take(row, column);
    }

    /// Exact distances of the hits so far, offered to their lists.
    void settle() {
      if (hits_.empty()) return;
      const MaskedPoints& rows = s_->rows_;
      const MaskedPoints& columns = s_->columns_;
      s_->kernels_.masked(rows.row(row0_), columns.row(column0_),
                          columns.padded,
                          static_cast<double>(s_->request_.min_pairs),
                          hits_.data(), static_cast<std::int64_t>(hits_.size()),
                          r_.data());
      for (std::size_t h = 0; h < hits_.size(); ++h) {
        if (!has_value(r_[h])) continue;
        const double distance =
            s_->request_.metric->finish(r_[h], 0.0, 0.0);
        const std::int64_t row = row0_ + hits_[h].row;
        const std::int64_t column = column0_ + hits_[h].column;
        const std::size_t r = static_cast<std::size_t>(hits_[h].row);
        const std::size_t c = static_cast<std::size_t>(hits_[h].column);
        const std::int32_t id =
            columns.order.id[static_cast<std::size_t>(column)];
        if (!s_->is_self(row, id) && s_->offer(row, distance, id))
          row_threshold_[r] = s_->threshold(row);
        if (s_->symmetric_ &&
            s_->offer(column, distance,
                      rows.order.id[static_cast<std::size_t>(row)]))
          column_threshold_[c] = s_->threshold(column);
      }
      pairs_exact_ += static_cast<double>(hits_.size());
      hits_.clear();
    }

    MaskedSearch* s_;
    std::vector<float> row_threshold_, column_threshold_;
    std::vector<Pair> hits_;
    std::vector<double> r_;
    alignas(64) std::int32_t tile_[CommonTile::rows * Tile::columns];
    alignas(64) CommonTile common_;
    std::uint64_t keep_[CommonTile::rows];  ///< bit c: column c of the tile
    std::int64_t row0_ = 0, column0_ = 0, num_rows_ = 0, num_columns_ = 0;
    bool diagonal_ = false;
    double pairs_filtered_ = 0, pairs_exact_ = 0;
  };

  float threshold(std::int64_t row) const {
    return threshold_[static_cast<std::size_t>(row)].load(
        std::memory_order_relaxed);
  }

  bool is_self(std::int64_t row, std::int32_t id) const {
    return !self_.empty() && self_[static_cast<std::size_t>(row)] == id;
  }

  bool offer(std::int64_t row, double distance, std::int32_t index) {
    if (distance > lists_.limit(row) || !lists_.offer(row, distance, index))
      return false;
    threshold_[static_cast<std::size_t>(row)].store(
        masked_threshold(lists_.limit(row)), std::memory_order_relaxed);
    return true;
  }

  bool emit_row(const Neighbours& out, std::int64_t i, std::vector<double>& r) {
    const std::int64_t k = request_.k;
    const std::int32_t place = rows_.order.place[static_cast<std::size_t>(i)];
    if (place < 0) {
      emit_missing(out, i, k);
      return false;
    }
    NeighbourHeap list = lists_.heap(place);
    const std::int64_t size = list.size();
    list.sort();
    const std::int32_t* index = lists_.indices(place);
    if (out.correlation != nullptr) {
      r.resize(static_cast<std::size_t>(k));
      std::vector<Pair> pairs;
      for (std::int64_t rank = 0; rank < size; ++rank)
        pairs.push_back(
            {place,
             columns_.order.place[static_cast<std::size_t>(index[rank])]});
      kernels_.masked(rows_.rows.data(), columns_.rows.data(), columns_.padded,
                      static_cast<double>(request_.min_pairs), pairs.data(),
                      size, r.data());
    }
    emit_masked(out, i, k, size, lists_.distances(place), index, r.data());
    return size < k;
  }

  const Request& request_;
  const Plan& plan_;
  const Kernels& kernels_;
  const MaskedPoints& rows_;
  const MaskedPoints& columns_;
  const bool symmetric_;
  const std::vector<std::int32_t> self_;  ///< queries: which point each is
  const bool filtered_;
  Progress* progress_;
  NeighbourLists lists_;
  std::unique_ptr<std::atomic<float>[]> threshold_;
  MaskedFilterRows column_filter_, row_filter_;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
};

}  // namespace

void find_masked(const Request& asked, const RowSource& points,
                 const RowSource* queries, const Neighbours& out,
                 Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const Kernels& kernels = choose_kernels(asked.instruction_set);
  const RowForm form = asked.metric->row_form;
  Request request = asked;
  request.num_threads = useful_threads(
      asked.num_threads,
      static_cast<double>(queries != nullptr ? queries->num_points()
                                             : points.num_points()) *
          static_cast<double>(points.num_points()) *
          static_cast<double>(points.num_features()) / 16);
  const MaskedPoints columns = prepare_masked(
      points, form, request.skip, true, request.num_threads, progress);
  MaskedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_masked(*queries, form, request.query_skip, false,
                              request.num_threads, progress);
  const MaskedPoints& rows = queries != nullptr ? own_rows : columns;
  if (rows.size() == 0 || columns.size() == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i) emit_missing(out, i, request.k);
    return;
  }
  PlanInput input;
  input.num_points = columns.size();
  input.num_features = columns.num_features;
  input.num_queries = queries != nullptr ? rows.size() : 0;
  input.k = request.k;
  input.chunk_size = request.chunk_size;
  input.num_workers = request.num_threads;
  const Plan plan = plan_cpu(input);
  MaskedSearch search(request, plan, kernels, rows, columns,
                      rows.size() > kFew, progress);
  const double seconds_prepare = seconds_since(start);
  search.run();
  const double seconds_search = seconds_since(start) - seconds_prepare;
  const double rows_short = search.emit(out);
  if (stats == nullptr) return;
  stats->pairs_filtered = search.pairs_filtered();
  stats->filtered = stats->pairs_filtered > 0;
  stats->pairs_exact = search.pairs_exact();
  stats->rows_short = rows_short;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
