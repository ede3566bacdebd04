#include "cpu/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "cpu/hits.hpp"
#include "cpu/rows.hpp"
#include "cpu/turns.hpp"

namespace fsknn {
namespace cpu {

/// What one thread needs for its chunks.
class Search::Worker {
 public:
  Worker(Search& search, const PointBlock& rows, const PointBlock& columns)
      : s_(&search),
        rows_at_(rows),
        columns_at_(columns),
        same_(rows.filter == columns.filter),
        row_threshold_(search.plan_.chunk_size),
        column_threshold_(search.plan_.chunk_size),
        rows_(*rows.points, search.plan_.chunk_size),
        columns_(*columns.points, search.plan_.chunk_size) {
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
    const std::int64_t num_rows = std::min(size, rows_at_.size() - row0);
    const std::int64_t num_columns =
        std::min(size, columns_at_.size() - column0);
    if (num_rows <= 0 || num_columns <= 0) return;
    diagonal_ = s_->is_graph_ && same_ && row_chunk == column_chunk;
    rows_.move_to(row0);
    columns_.move_to(column0);
    copy_thresholds(rows_at_.first_place + row0, num_rows, row_threshold_);
    if (s_->is_graph_)
      copy_thresholds(columns_at_.first_place + column0, num_columns,
                      column_threshold_);
    else
      std::fill_n(column_threshold_.data(), size,
                  s_->thresholds_.keep_none());

    const FilterRows& a = *rows_at_.filter;
    const FilterRows& b = *columns_at_.filter;
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
        collect_hits(keep, r, c, num_rows, num_columns, diagonal_, hits_);
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
      to[p] = s_->threshold_[place0 + p].load(std::memory_order_relaxed);
    std::fill(to.data() + count, to.data() + to.size(),
              s_->thresholds_.keep_none());
  }

  /// Exact distances of the hits so far, offered to their lists.
  void settle(std::int64_t row0, std::int64_t column0) {
    if (hits_.empty()) return;
    const PreparedPoints& rows = *rows_at_.points;
    const PreparedPoints& columns = *columns_at_.points;
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
      const std::int64_t row_place = rows_at_.first_place + row;
      const std::int64_t column_place = columns_at_.first_place + column;
      const std::int32_t row_id = rows_at_.id(row);
      const std::int32_t column_id = columns_at_.id(column);
      if (column_id != s_->self_of(row_id) &&
          s_->offer(row_place, distance, column_id))
        row_threshold_[hit.row] =
            s_->threshold_[row_place].load(std::memory_order_relaxed);
      if (s_->is_graph_ && s_->offer(column_place, distance, row_id))
        column_threshold_[hit.column] =
            s_->threshold_[column_place].load(std::memory_order_relaxed);
    }
    pairs_exact_ += static_cast<double>(hits_.size());
    hits_.clear();
  }

  Search* s_;
  PointBlock rows_at_, columns_at_;
  bool same_;  ///< a block meets itself
  Buffer<std::int32_t> row_threshold_, column_threshold_;
  ChunkRows rows_, columns_;
  std::vector<Pair> hits_;
  std::vector<double> sums_;
  alignas(64) std::int32_t tile_[Tile::rows * Tile::columns];
  bool diagonal_ = false;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
};

Search::Search(const Request& request, const Plan& plan, const Kernels& kernels,
               const DistanceRule& rule, const FilterScale& scale,
               bool is_graph, std::int64_t num_places, Progress* progress)
    : request_(request),
      metric_(*request.metric),
      plan_(plan),
      kernels_(kernels),
      rule_(rule),
      scale_(scale),
      is_graph_(is_graph),
      progress_(progress),
      thresholds_(scale_, metric_, rule_),
      lists_(num_places, request.k),
      threshold_(new std::atomic<std::int32_t>[static_cast<std::size_t>(
          num_places)]) {
  for (std::int64_t p = 0; p < num_places; ++p)
    threshold_[p].store(thresholds_.keep_all(), std::memory_order_relaxed);
}

bool Search::offer(std::int64_t place, double distance, std::int32_t index) {
  if (distance > lists_.limit(place) || !lists_.offer(place, distance, index))
    return false;
  set_threshold(place);
  return true;
}

void Search::set_threshold(std::int64_t place) {
  threshold_[place].store(thresholds_.keep_up_to(lists_.limit(place)),
                          std::memory_order_relaxed);
}

void Search::meet(const PointBlock& rows, const PointBlock& columns,
                  double from, double to) {
  const std::int64_t down = chunks_of(rows), across = chunks_of(columns);
  const Stretch stretch = {progress_, from, to};
  if (!is_graph_ || rows.filter != columns.filter) {
    run_pieces(down * across, request_.num_threads, stretch, [&] {
      return [&, w = Worker(*this, rows, columns)](std::int64_t at) mutable {
        w.chunk(at / across, at % across);
      };
    });
    return;
  }
  // Few enough rounds that every thread has some 16 pieces of each stretch of
  // rounds, so that none waits long for the last.
  const std::int64_t rounds = down * (down / 2 + 1);
  const std::int64_t span = std::max<std::int64_t>(
      1, std::min<std::int64_t>(8, rounds / (16 * request_.num_threads)));
  const CirculantSchedule schedule(down, span);
  run_pieces(schedule.num_pieces(), request_.num_threads, stretch, [&] {
    return [&, w = Worker(*this, rows, columns)](std::int64_t at) mutable {
      const CirculantSchedule::Piece piece = schedule.piece(at);
      for (std::int64_t r = piece.first_round; r < piece.end_round; ++r) {
        const std::int64_t column = schedule.column(piece.row, r);
        if (column >= 0) w.chunk(piece.row, column);
      }
    };
  });
}

bool Search::emit(const Neighbours& out, const std::vector<std::int32_t>& place,
                  const PreparedPoints* rows, const PreparedPoints* columns) {
  std::atomic<bool> beyond{false};
  constexpr std::int64_t kBlock = 64;
  const bool correlate = out.correlation != nullptr && columns != nullptr;
  const std::int64_t k = request_.k;
  run_pieces((out.rows + kBlock - 1) / kBlock, request_.num_threads,
             {progress_, 1.0, 1.0}, [&] {
    std::unique_ptr<Correlations> correlations;
    if (correlate)
      correlations.reset(new Correlations(kernels_, *rows, *columns));
    return [&, of = std::move(correlations)](std::int64_t block) mutable {
      const std::int64_t last = std::min(out.rows, (block + 1) * kBlock);
      for (std::int64_t i = block * kBlock; i < last; ++i) {
        const std::int32_t at = place[static_cast<std::size_t>(i)];
        emit_row(out, i, at, &beyond);
        if (at < 0 || !of) continue;
        const double* r = (*of)(at, lists_.indices(at), k);
        for (std::int64_t rank = 0; rank < k; ++rank)
          out.correlation[out.at(i, 0) + rank * out.step()] = r[rank];
      }
    };
  });
  return !beyond;
}

void Search::emit_row(const Neighbours& out, std::int64_t i, std::int32_t place,
                      std::atomic<bool>* beyond) {
  const std::int64_t k = request_.k;
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
}

void Search::seed(const PointBlock& rows, const PointBlock& columns,
                  double from, double to) {
  const std::int64_t size = plan_.chunk_size, k = seeds();
  const std::int64_t full_chunks = columns.size() / size;
  const std::int64_t others = full_chunks - (is_graph_ ? 1 : 0);
  if (others < 1) return;
  // With m points seen beforehand, about k log(n / m) pairs a row pass the
  // filter until its list is final. Where m is k times the price of such a pair
  // (some 200 cycles) over that of a filtered one, one more would cost as much
  // as it saves.
  const double filtered_pair =
      (static_cast<double>(columns.filter->steps) / 2 + 6) / 16;
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
  run_pieces(chunks_of(rows), request_.num_threads, {progress_, from, to}, [&] {
    return [&, best = std::vector<float>()](std::int64_t split) mutable {
      seed_split(rows, columns, split, num_samples, num_groups, best);
    };
  });
}

void Search::seed_split(const PointBlock& rows, const PointBlock& columns,
                        std::int64_t split, std::int64_t num_samples,
                        int num_groups, std::vector<float>& best) {
  const std::int64_t size = plan_.chunk_size;
  const std::int64_t row0 = split * size;
  const std::int64_t num_rows = std::min(size, rows.size() - row0);
  const std::int64_t full_chunks = columns.size() / size;
  const std::size_t width =
      static_cast<std::size_t>(num_groups) * Tile::panel;
  best.assign(static_cast<std::size_t>(size) * width,
              std::numeric_limits<float>::infinity());
  alignas(64) std::int32_t tile[Tile::rows * Tile::columns];
  const FilterRows& a = *rows.filter;
  const FilterRows& b = *columns.filter;
  int group = 0;
  for (std::int64_t m = 0, chunk = split; m < num_samples; ++m) {
    do {
      chunk = (chunk + 1) % full_chunks;
    } while (is_graph_ && chunk == split);
    for (std::int64_t c = 0; c < size; c += Tile::columns) {
      const std::int64_t column = chunk * size + c;
      for (std::int64_t r = 0; r < num_rows; r += Tile::rows) {
        const std::int64_t row = row0 + r;
        kernels_.accumulate(scale_.product, a.row(row),
                            b.panel(column), Tile::panels, a.steps, tile);
        for (std::int64_t q = 0; q < Tile::rows && r + q < num_rows; ++q)
          kernels_.lower_best(
              scale_.test, tile + q * Tile::columns, Tile::panels,
              a.upper_side(row + q), b.upper_side(column), group,
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
    lists_.set_limit(rows.first_place + row0 + r, limit);
    set_threshold(rows.first_place + row0 + r);
  }
}

}  // namespace cpu
}  // namespace fsknn
