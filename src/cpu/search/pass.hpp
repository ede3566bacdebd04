#pragma once

// One pass over pairs of points, chunk by chunk: a tile of the filter, its
// hits, and in batches the exact step for these. The kind of pairs and the
// treatment of hits are template parameters, because a call through a pointer
// for each hit would be slow.

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
  bool diagonal;  ///< compared with itself: each pair from one side

  double pairs() const {
    return static_cast<double>(num_rows) * static_cast<double>(num_columns) *
           (diagonal ? 0.5 : 1.0);
  }
};

/// The numbers of pairs in a pass, by the step that decided them.
struct PassCounts {
  double filtered = 0, exact = 0;
  double pruned = 0;  ///< by the keys or boxes of their points
  void add(const PassCounts& other) {
    filtered += other.filtered;
    pruned += other.pruned;
    exact += other.exact;
  }
};

/// The defaults of a sink. A sink also has
///   kHits: the number of hits to collect before the exact step;
///   enter(chunk, row_threshold, column_threshold): fills both arrays,
///     [chunk_size], and pads them beyond the chunk with the value that keeps
///     no pair. They stay valid, and the sink may lower them, until the next
///     chunk. Returns false if no pair of the chunk is wanted;
///   take(hit, value): takes a pair by its numbers within the chunk, and the
///     value that the exact step found.
struct SinkDefaults {
  /// Whether the sink wants a pair that passed the filter.
  bool wanted(std::int32_t, std::int32_t) const { return true; }
  /// Called after a batch of hits.
  void reranked() {}
  /// Called at the end of each thread, one thread at a time.
  void merge() {}
};

/// The defaults of pairs that are never pruned.
struct PairsDefaults {
  /// Whether any pair of a chunk may pass, by what is known before the sink
  /// enters it.
  bool may_meet(const Chunk&) const { return true; }
  /// Whether any pair of a chunk may pass, by the current thresholds of its
  /// points. Called before the chunk's tiles.
  template <class Threshold>
  bool any_near(const Chunk&, const Threshold*, const Threshold*) {
    return true;
  }
  /// The first tile of rows from r on, with the tile of columns c, that may
  /// have a pair that passes; from `end` on there is none. The others are
  /// skipped.
  std::int64_t next_near(std::int64_t r, std::int64_t, std::int64_t) const {
    return r;
  }
  /// Removes hits that a more exact filter drops at the current thresholds.
  template <class Threshold>
  void look_again(const Chunk&, const Threshold*, const Threshold*,
                  std::vector<Pair>&) {}
};

/// One thread's part of a pass. Pairs has, besides the members of
/// PairsDefaults,
///   Threshold, kRows: the rows of a tile, whose columns are Tile::columns;
///   num_rows(), num_columns(): the number of points on either side;
///   has_filter(), keep_none();
///   enter(chunk);
///   tile(chunk, row, column, panels, row_threshold, column_threshold, keep):
///     sets bit c of keep[r] where the pair may pass. Pairs beyond the chunk's
///     end, or below the diagonal, may have any bit;
///   hit(chunk, pair, row, column): notes that a pair of that tile, kept or
///     unfiltered, is among the next hits for
///   exact(hits, values), and has(value): whether the pair has a value at all;
///   tile_cost(): approximate nanoseconds.
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

  /// Processes all pairs of a chunk: filter, exact step, sink.
  void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
    at_.row0 = row_chunk * size_;
    at_.column0 = column_chunk * size_;
    at_.num_rows = std::min(size_, pairs_.num_rows() - at_.row0);
    at_.num_columns = std::min(size_, pairs_.num_columns() - at_.column0);
    at_.diagonal = symmetric_ && row_chunk == column_chunk;
    if (at_.num_rows <= 0 || at_.num_columns <= 0) return;
    if (!pairs_.may_meet(at_)) {
      counts_.pruned += at_.pairs();
      return;
    }
    if (!sink_.enter(at_, row_threshold_.data(), column_threshold_.data()))
      return;
    if (!pairs_.any_near(at_, row_threshold_.data(),
                         column_threshold_.data())) {
      counts_.pruned += at_.pairs();
      return;
    }
    pairs_.enter(at_);
    double skipped = 0.0;
    for (std::int64_t c = 0; c < at_.num_columns; c += Tile::columns) {
      // Tiles below the diagonal are processed from the other side.
      const std::int64_t end = at_.diagonal
                                   ? std::min(at_.num_rows, c + Tile::columns)
                                   : at_.num_rows;
      for (std::int64_t r = 0; r < end; r += Pairs::kRows) {
        const std::int64_t near = std::min(end, pairs_.next_near(r, end, c));
        if (near > r) {
          skipped += pairs_of_rows(r, near, c);
          if (near == end) break;
          r = near;
        }
        std::uint64_t keep[Pairs::kRows];
        if (pairs_.has_filter())
          filter(r, c, keep);
        else
          keep_all(r, c, keep);
        collect(r, c, keep);
        if (hits_.size() >= Sink::kHits) rerank();
      }
    }
    rerank();
    counts_.pruned += skipped;
    if (pairs_.has_filter()) counts_.filtered += at_.pairs() - skipped;
  }

  Sink& sink() { return sink_; }
  const PassCounts& counts() const { return counts_; }

 private:
  /// The number of pairs of these rows with a tile's columns that
  /// Chunk::pairs() counts.
  double pairs_of_rows(std::int64_t r, std::int64_t end, std::int64_t c) const {
    const std::int64_t rows = std::min(end, at_.num_rows) - r;
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

  /// Replaces the filter. It drops only pairs whose points both take no
  /// neighbour.
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

  /// Appends the pairs with a bit in `keep` to the hits. It omits pairs beyond
  /// the chunk's end; on the diagonal it takes each pair from one side and no
  /// row with itself. It goes column by column, so that the exact step reads a
  /// column once for the tile's few rows.
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

  /// Computes the hits so far by the exact step and passes them to the sink.
  void rerank() {
    if (hits_.empty()) return;
    pairs_.look_again(at_, row_threshold_.data(), column_threshold_.data(),
                      hits_);
    pairs_.exact(hits_, values_.data());
    for (std::size_t h = 0; h < hits_.size(); ++h)
      if (pairs_.has(values_[h])) sink_.take(hits_[h], values_[h]);
    sink_.reranked();
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
  bool symmetric;         ///< each unordered pair of splits only once
  std::int64_t span = 1;  ///< rounds of the circulant schedule in a piece
};

/// Processes the chunks of one piece of a grid's schedule.
template <class Pass>
void run_piece(const CirculantSchedule& schedule, std::int64_t at, Pass& pass) {
  const CirculantSchedule::Piece piece = schedule.piece(at);
  for (std::int64_t r = piece.first_round; r < piece.end_round; ++r) {
    const std::int64_t column = schedule.column(piece.row, r);
    if (column >= 0) pass.chunk(piece.row, column);
  }
}

/// Processes all chunks of the grid on all threads; make_pass() makes each
/// thread's ChunkPass.
template <class MakePass>
PassCounts run_pass(const ChunkGrid& grid, int num_threads,
                    ProgressRange progress_range, MakePass make_pass) {
  PassCounts counts;
  const auto run = [&](std::int64_t num_pieces, auto chunks_of) {
    run_pieces(num_pieces, num_threads, progress_range, make_pass, chunks_of,
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
