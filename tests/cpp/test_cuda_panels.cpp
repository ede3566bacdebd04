// How a matrix and an answer are divided for transfer, and the host threads
// that copy the pieces.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cuda/plan/panels.hpp"
#include "cuda/plan/pieces.hpp"
#include "cuda/plan/row_ranges.hpp"

using fsknn::cuda::AnswerShape;
using fsknn::cuda::bytes_preparing;
using fsknn::cuda::kPieceBytes;
using fsknn::cuda::PanelShape;
using fsknn::cuda::PieceTeam;
using fsknn::cuda::SortShape;

namespace {

const std::int64_t kSizes[] = {1,       2,        7,         8,       9,
                               295,     1024,     24158,     1048576, 1048577,
                               1533876, 50000000, 2147483647};

}  // namespace

TEST_CASE("panels cover a matrix, and their pieces fit pinned memory") {
  for (const std::int64_t n : kSizes)
    for (const std::int64_t d : kSizes)
      for (const bool by_column : {true, false}) {
        if (static_cast<double>(n) * static_cast<double>(d) > 1e12) continue;
        const PanelShape s(n, d, by_column);
        CAPTURE(n);
        CAPTURE(d);
        CHECK(s.rows >= 1);
        CHECK(s.panels(n) * s.rows >= n);
        CHECK((s.panels(n) - 1) * s.rows < n);
        CHECK(s.pieces * s.piece_features >= d);
        CHECK((s.pieces - 1) * s.piece_features < d);
        CHECK(s.rows * s.piece_features * 8 <= s.piece_bytes);
        // Only a row wider than a piece makes pieces larger.
        if (by_column || d * 8 <= kPieceBytes)
          CHECK(s.piece_bytes == kPieceBytes);
        if (by_column) CHECK(s.rows % 8 == 0);
        CHECK(s.buffers >= 2);
        CHECK(s.panel_size() * s.buffers * 8 <= bytes_preparing(n, d, false));
      }
  // A matrix that is not very wide never needs much of the device's memory.
  CHECK(bytes_preparing(1533876, 295, false) <= 3 * kPieceBytes);
}

TEST_CASE("rows that are sorted have room, in powers of two") {
  CHECK(SortShape(100, 1024).width == 0);
  for (const std::int64_t d : {1025, 2048, 2049, 50000, 5000000}) {
    const SortShape s(100, d);
    CHECK(s.width >= d);
    CHECK((s.width & (s.width - 1)) == 0);
    CHECK(s.width % SortShape::tile == 0);
    CHECK(s.rows >= 1);
    CHECK(s.rows <= 100);
  }
}

TEST_CASE("the pieces of an answer hold all of it") {
  for (const std::int64_t rows : kSizes)
    for (const std::int64_t k :
         {std::int64_t{1}, std::int64_t{20}, std::int64_t{1024}, rows - 1}) {
      if (k < 1 || static_cast<double>(rows) * static_cast<double>(k) > 1e13)
        continue;
      CAPTURE(rows);
      CAPTURE(k);
      const AnswerShape edges(rows, k, true), m(rows, k, false);
      CHECK(edges.num_pieces * edges.entries >= rows * k);
      CHECK(edges.entries * AnswerShape::entry_bytes <= kPieceBytes);
      CHECK(m.rows * m.ranks == m.entries);
      CHECK(m.entries * AnswerShape::entry_bytes <= kPieceBytes);
      CHECK(m.num_pieces ==
            ((rows + m.rows - 1) / m.rows) * ((k + m.ranks - 1) / m.ranks));
      CHECK(m.bytes_device() <= 4 * kPieceBytes);
      CHECK(m.slot_bytes() >= m.entries * AnswerShape::entry_bytes);
      CHECK(m.slot_bytes() % 8 == 0);
      CHECK(m.slots == std::min<std::int64_t>(4, m.num_pieces));
    }
  // A piece has an odd number of entries, and several pieces are in transfer.
  const AnswerShape odd(619, 1500, false);
  CHECK(odd.entries % 2 == 1);
  CHECK(odd.slots > 1);
  CHECK(odd.slot_bytes() % 8 == 0);
  CHECK(AnswerShape(0, 20, true).num_pieces == 0);
  CHECK(AnswerShape(0, 20, false).num_pieces == 0);
}

TEST_CASE("every part is done once, and none before its piece is released") {
  for (const int threads : {1, 2, 5}) {
    constexpr std::int64_t pieces = 40, parts = 7;
    std::vector<std::atomic<int>> done(pieces);
    std::atomic<std::int64_t> allowed{0};
    std::atomic<bool> too_early{false};
    PieceTeam team(parts, threads, [&](std::int64_t piece, std::int64_t part) {
      if (piece >= allowed) too_early = true;
      done[static_cast<std::size_t>(piece)] += 1 << (2 * part);
    });
    // Runs several jobs, with pauses long enough for threads to sleep.
    for (const std::int64_t now : {pieces, std::int64_t{1}, pieces}) {
      for (std::atomic<int>& d : done) d = 0;
      allowed = 0;
      team.begin(now);
      for (std::int64_t piece = 0; piece < now; ++piece) {
        allowed = std::min(now, piece + 3);
        team.release(piece + 3);
        team.finish(piece);
        CHECK(done[static_cast<std::size_t>(piece)] == 0x1555);
        if (piece % 16 == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    CHECK_FALSE(too_early);
  }
}

TEST_CASE("what a part throws reaches the thread that waits, and all stop") {
  for (const int threads : {1, 4}) {
    PieceTeam team(4, threads, [](std::int64_t piece, std::int64_t part) {
      if (piece == 2 && part == 3) throw std::runtime_error("no more");
    });
    team.begin(10);
    team.release(10);
    const auto all = [&] {
      for (std::int64_t piece = 0; piece < 10; ++piece) team.finish(piece);
    };
    CHECK_THROWS_WITH(all(), "no more");
  }
}

TEST_CASE(
    "a row_range's rows meet each block of columns once, panel by panel") {
  using fsknn::cuda::ListedJob;
  using fsknn::cuda::RowRangeLaunch;
  using fsknn::cuda::RowRangeShape;
  for (const std::int64_t rows : {1, 2, 99, 400})
    for (const std::int64_t columns : {1, 3, 5, 117, 1501})
      for (const std::int64_t panel : {1, 2, 32, 2000})
        for (const std::int64_t fill : {1, 3, 9}) {
          const RowRangeShape shape = {rows, columns, panel, fill, 132};
          std::vector<int> met(static_cast<std::size_t>(rows * columns));
          std::int64_t next = 0, last_round = 0;
          for (const RowRangeLaunch& launch : schedule_row_range(shape)) {
            // Launches are in order, each within one panel.
            CHECK(launch.first_block == next);
            CHECK(launch.end_block > next);
            CHECK((launch.end_block - 1) / panel == next / panel);
            next = launch.end_block;
            CHECK(launch.fill == (launch.end_block <= fill));
            if (launch.ends_round) {
              CHECK((launch.end_block == std::min(fill, columns) ||
                     launch.end_block == std::min(2 * last_round, columns)));
              last_round = launch.end_block;
            }
            CHECK(launch.num_jobs() <=
                  rows * std::min(panel, launch.end_block));
            for (std::int64_t at = 0; at < launch.num_jobs(); ++at) {
              const ListedJob job = launch.job(at);
              // The first blocks fill a list from its start.
              CHECK(job.first_delta == job.column_block);
              for (std::int32_t c = job.first_delta; c < job.end_delta; ++c)
                ++met[static_cast<std::size_t>(job.row_block * columns + c)];
            }
          }
          CHECK(next == columns);
          CHECK(last_round == columns);
          CHECK(std::all_of(met.begin(), met.end(),
                            [](int times) { return times == 1; }));
        }
}
