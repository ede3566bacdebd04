#pragma once

// One pass over pairs of points, chunk by chunk: a tile of the filter, its
// hits, and now and then the exact step for those. What kind of pairs they are,
// and what becomes of a hit, are template parameters: a call through a pointer
// for each hit would be felt.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/search/plan.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {

/// A chunk of the matrix of distances, by places.
struct Chunk {
  std::int64_t row0, column0, num_rows, num_columns;
  bool diagonal;  ///< met with itself: each pair from one side

  double pairs() const {
    return static_cast<double>(num_rows) * static_cast<double>(num_columns) *
           (diagonal ? 0.5 : 1.0);
  }
};

/// How many pairs a pass dealt with.
struct PassCounts {
  double filtered = 0, exact = 0;
  double apart = 0;  ///< left out by what is known of their points
  void add(const PassCounts& other) {
    filtered += other.filtered;
    apart += other.apart;
    exact += other.exact;
  }
};

/// What a sink has where it needs nothing else. A sink has besides
///   kHits: hits that are collected before the exact step;
///   enter(chunk, row_threshold, column_threshold): fills both, [chunk_size],
///     what is beyond the chunk with what keeps none; they stay, and may be
///     lowered until the next chunk. False: no pair of the chunk is wanted;
///   take(hit, value): a pair by its numbers within the chunk, and what the
///     exact step has of it.
struct SinkDefaults {
  /// Whether a pair that the filter let pass is wanted.
  bool wanted(std::int32_t, std::int32_t) const { return true; }
  /// After a batch of hits.
  void settled() {}
  /// At a thread's end, one at a time.
  void merge() {}
};

/// What pairs have that are met one and all.
struct PairsDefaults {
  /// Before the tiles of a chunk, by the thresholds that its points have then:
  /// whether any of its pairs may pass.
  template <class Threshold>
  bool any_near(const Chunk&, const Threshold*, const Threshold*) {
    return true;
  }
  /// Whether no pair of that tile may: it is left out.
  bool is_apart(const Chunk&, std::int64_t, std::int64_t) const {
    return false;
  }
  /// Takes out those hits of the filter's that a closer one drops, by the
  /// thresholds that there are now.
  template <class Threshold>
  void look_again(const Chunk&, const Threshold*, const Threshold*,
                  std::vector<Pair>&) {}
};

/// One thread's hand in a pass. Pairs has, besides what PairsDefaults are for,
///   Threshold, kRows: rows of a tile, whose columns are Tile::columns;
///   num_rows(), num_columns(): how many points there are either way;
///   has_filter(), keep_none();
///   enter(chunk);
///   tile(chunk, row, column, panels, row_threshold, column_threshold, keep):
///     bit c of keep[r], where the pair may pass: without pairs beyond the
///     chunk's end, or on the wrong side of the diagonal, or with them;
///   hit(chunk, pair, row, column): a pair that it kept of that tile, or that
///     no filter has seen, is among the next hits of
///   exact(hits, values), and has(value): whether the pair has one at all;
///   tile_cost(): nanoseconds, roughly.
template <class Pairs, class Sink>
class ChunkPass {
 public:
  template <class MakePairs, class MakeSink>
  ChunkPass(std::int64_t chunk_size, bool symmetric, MakePairs make_pairs,
            MakeSink make_sink)
      : size_(chunk_size),
        symmetric_(symmetric),
        pairs_(make_pairs()),
        sink_(make_sink()),
        row_threshold_(chunk_size),
        column_threshold_(chunk_size) {
    constexpr std::size_t most = Sink::kHits + Pairs::kRows * Tile::columns;
    hits_.reserve(most);
    values_.resize(most);
  }
  ChunkPass(const ChunkPass&) = delete;
  ChunkPass& operator=(const ChunkPass&) = delete;

  /// All pairs of a chunk: filter, exact, sink.
  void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
    at_.row0 = row_chunk * size_;
    at_.column0 = column_chunk * size_;
    at_.num_rows = std::min(size_, pairs_.num_rows() - at_.row0);
    at_.num_columns = std::min(size_, pairs_.num_columns() - at_.column0);
    at_.diagonal = symmetric_ && row_chunk == column_chunk;
    if (at_.num_rows <= 0 || at_.num_columns <= 0) return;
    if (!sink_.enter(at_, row_threshold_.data(), column_threshold_.data()))
      return;
    pairs_.enter(at_);
    if (!pairs_.any_near(at_, row_threshold_.data(),
                         column_threshold_.data())) {
      counts_.apart += at_.pairs();
      return;
    }
    double skipped = 0.0;
    for (std::int64_t c = 0; c < at_.num_columns; c += Tile::columns) {
      // Below the diagonal: met from the other side.
      const std::int64_t end = at_.diagonal
                                   ? std::min(at_.num_rows, c + Tile::columns)
                                   : at_.num_rows;
      for (std::int64_t r = 0; r < end; r += Pairs::kRows) {
        if (pairs_.is_apart(at_, r, c)) {
          skipped += pairs_of_tile(r, c);
          continue;
        }
        std::uint64_t keep[Pairs::kRows];
        if (pairs_.has_filter())
          filter(r, c, keep);
        else
          keep_all(r, c, keep);
        collect(r, c, keep);
        if (hits_.size() >= Sink::kHits) settle();
      }
    }
    settle();
    counts_.apart += skipped;
    if (pairs_.has_filter()) counts_.filtered += at_.pairs() - skipped;
  }

  Sink& sink() { return sink_; }
  const PassCounts& counts() const { return counts_; }

 private:
  /// As many as Chunk::pairs() counts of it.
  double pairs_of_tile(std::int64_t r, std::int64_t c) const {
    const std::int64_t rows =
        std::min<std::int64_t>(Pairs::kRows, at_.num_rows - r);
    const std::int64_t columns =
        std::min<std::int64_t>(Tile::columns, at_.num_columns - c);
    if (!at_.diagonal) return static_cast<double>(rows * columns);
    double pairs = 0.0;
    for (std::int64_t i = r; i < r + rows; ++i) {
      const std::int64_t first = std::max(c, i + 1);
      pairs +=
          static_cast<double>(std::max<std::int64_t>(0, c + columns - first));
    }
    return pairs;
  }

  void filter(std::int64_t r, std::int64_t c, std::uint64_t* keep) {
    const int panels = static_cast<int>(
        (std::min<std::int64_t>(Tile::columns, at_.num_columns - c) +
         Tile::panel - 1) /
        Tile::panel);
    pairs_.tile(at_, r, c, panels, row_threshold_.data(),
                column_threshold_.data(), keep);
    poll_after(pairs_.tile_cost());
  }

  /// As a filter that drops no pair but of two that both look for none.
  void keep_all(std::int64_t row, std::int64_t column, std::uint64_t* keep) {
    const auto none = pairs_.keep_none();
    std::uint64_t open = 0;
    const std::int64_t width =
        std::min<std::int64_t>(Tile::columns, at_.num_columns - column);
    for (std::int64_t c = 0; c < width; ++c)
      open |= static_cast<std::uint64_t>(column_threshold_[column + c] != none)
              << c;
    for (std::int64_t r = 0; r < Pairs::kRows; ++r) {
      keep[r] = row + r < at_.num_rows && row_threshold_[row + r] != none
                    ? (std::uint64_t{1} << Tile::columns) - 1
                    : open;
    }
    poll_after(100.0);
  }

  /// The pairs that `keep` has bits for, to the end of the hits: without those
  /// past the chunk's end, and on the diagonal each from one side and no row
  /// with itself. Column by column, so that the exact step reads a column once
  /// for all of the tile's few rows.
  void collect(std::int64_t row, std::int64_t column,
               const std::uint64_t* keep) {
    std::uint64_t any = 0;
    for (int r = 0; r < Pairs::kRows; ++r) any |= keep[r];
    for (; any != 0; any &= any - 1) {
      const int c = __builtin_ctzll(any);
      unsigned rows = 0;
      for (int r = 0; r < Pairs::kRows; ++r)
        rows |= static_cast<unsigned>(keep[r] >> c & 1) << r;
      for (; rows != 0; rows &= rows - 1)
        collect_pair(row, column, __builtin_ctz(rows), c);
    }
  }
  void collect_pair(std::int64_t row, std::int64_t column, int r, int c) {
    const Pair pair = {static_cast<std::int32_t>(row + r),
                       static_cast<std::int32_t>(column + c)};
    if (pair.row >= at_.num_rows || pair.column >= at_.num_columns ||
        (at_.diagonal && pair.row >= pair.column) ||
        !sink_.wanted(pair.row, pair.column))
      return;
    hits_.push_back(pair);
    pairs_.hit(at_, pair, row, column);
  }

  /// The exact step of the hits so far, and what it found to the sink.
  void settle() {
    if (hits_.empty()) return;
    pairs_.look_again(at_, row_threshold_.data(), column_threshold_.data(),
                      hits_);
    pairs_.exact(hits_, values_.data());
    for (std::size_t h = 0; h < hits_.size(); ++h)
      if (pairs_.has(values_[h])) sink_.take(hits_[h], values_[h]);
    sink_.settled();
    counts_.exact += static_cast<double>(hits_.size());
    hits_.clear();
  }

  const std::int64_t size_;
  const bool symmetric_;
  Pairs pairs_;
  Sink sink_;
  Chunk at_ = {};
  Buffer<typename Pairs::Threshold> row_threshold_, column_threshold_;
  std::vector<Pair> hits_;
  std::vector<double> values_;
  PassCounts counts_;
};

/// The chunks of a pass.
struct ChunkGrid {
  std::int64_t down, across;
  bool symmetric;         ///< each unordered pair of splits once
  std::int64_t span = 1;  ///< rounds of the circulant schedule in a piece
};

/// The chunks of one piece of a grid's schedule.
template <class Pass>
void run_piece(const CirculantSchedule& schedule, std::int64_t at, Pass& pass) {
  const CirculantSchedule::Piece piece = schedule.piece(at);
  for (std::int64_t r = piece.first_round; r < piece.end_round; ++r) {
    const std::int64_t column = schedule.column(piece.row, r);
    if (column >= 0) pass.chunk(piece.row, column);
  }
}

/// All chunks of the grid by all threads; make_pass() is each one's ChunkPass.
template <class MakePass>
PassCounts run_pass(const ChunkGrid& grid, int num_threads, Stretch stretch,
                    MakePass make_pass) {
  PassCounts counts;
  const auto run = [&](std::int64_t num_pieces, auto chunks_of) {
    run_pieces(num_pieces, num_threads, stretch, make_pass, chunks_of,
               [&](auto& pass) {
                 counts.add(pass.counts());
                 pass.sink().merge();
               });
  };
  if (!grid.symmetric) {
    run(grid.down * grid.across, [&](auto& pass, std::int64_t at) {
      pass.chunk(at / grid.across, at % grid.across);
    });
    return counts;
  }
  const CirculantSchedule schedule(grid.down, grid.span);
  run(schedule.num_pieces(),
      [&](auto& pass, std::int64_t at) { run_piece(schedule, at, pass); });
  return counts;
}

}  // namespace cpu
}  // namespace fsknn
