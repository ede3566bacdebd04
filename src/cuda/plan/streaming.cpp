#include "cuda/plan/streaming.hpp"

#include <algorithm>
#include <vector>

#include "cuda/plan/all_pairs.hpp"
#include "cuda/plan/panels.hpp"
#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The number of rows that fit into that many bytes, in whole units.
std::int64_t rows_in(double bytes, double a_row, std::int64_t unit,
                     std::int64_t most) {
  const std::int64_t rows =
      static_cast<std::int64_t>(bytes / a_row) / unit * unit;
  return std::max(unit, std::min(rows, most));
}

/// The bytes of panels and similar buffers: 8 MiB, or less if that is much of
/// the limit.
double bytes_of_piece(double bytes_usable) {
  return std::min(8.0 * (1 << 20), bytes_usable / 32);
}

/// The points of a panel. With long rows a piece would hold few points. Eight
/// threads prepare a row, so that a device needs thousands of rows to be busy.
std::int64_t rows_of_panel(const PlanInput& in, double row_bytes,
                           double bytes_usable) {
  const double enough = std::min(kEnoughRows * row_bytes, bytes_usable / 64);
  return rows_in(std::max(bytes_of_piece(bytes_usable), enough), row_bytes,
                 kChunkUnit, round_up(in.num_points, kChunkUnit));
}

/// The number of rows recomputed in doubles at a time, by the memory that they
/// take.
std::int64_t rows_recomputed(const PlanInput& in, const FilterStreaming& s,
                             double row_bytes, double bytes_usable) {
  return rows_in(4 * bytes_of_piece(bytes_usable),
                 row_bytes + static_cast<double>(s.stream_rows) * 8 +
                     static_cast<double>(in.k) * 20,
                 kChunkUnit, 4096);
}

std::int64_t power_of_two_from(std::int64_t least, std::int64_t value) {
  std::int64_t power = least;
  while (power < value) power *= 2;
  return power;
}

/// Plans the streaming with lists of that capacity.
FilterStreaming streaming_with(const PlanInput& in, const FilterShape& shape,
                               double bytes_usable, std::int32_t capacity) {
  FilterStreaming s;
  const SearchSizes sizes(in);
  const std::int64_t most_slots = FilterBlocks(in.num_points).num_slots();
  const double slots = static_cast<double>(most_slots);
  const double points = static_cast<double>(in.num_points);
  const double row_bytes = static_cast<double>(sizes.padded) * 8 + 12;
  s.capacity = capacity;
  s.fill_blocks = std::max<std::int64_t>(3, shape.fill_blocks);
  const std::int64_t filled = s.fill_blocks * kFilterBlock;
  s.fill_capacity = static_cast<std::int32_t>(
      filled <= 1024 ? filled : power_of_two_from(kFilterBlock, filled));
  const std::int64_t all = round_up(in.num_points, kChunkUnit);
  const double piece = bytes_of_piece(bytes_usable);
  s.stream_rows = rows_of_panel(in, row_bytes, bytes_usable);
  s.fill_slots =
      rows_in(4 * piece, 8.0 * s.fill_capacity, kFilterBlock, most_slots);
  s.redo_rows = rows_recomputed(in, s, row_bytes, bytes_usable);
  s.write_rows =
      rows_in(2 * piece, static_cast<double>(in.k) * 20, kChunkUnit, all);
  s.bytes_usable = bytes_usable;
  s.bytes_fixed =
      2 * static_cast<double>(s.stream_rows) * row_bytes +
      bytes_preparing(std::max(in.num_points, in.num_given), in.num_features,
                      in.unit_dot) +
      in.bytes_made_from +
      (in.num_given > in.num_points ? 4 * static_cast<double>(in.num_given)
                                    : 0) +
      bytes_answer(in.num_points, in.k) + 4 * points +
      (in.num_workers > 1 ? static_cast<double>(kStagedBytes) : 0);
  const double lists = slots * static_cast<double>(s.capacity) * 8;
  // The place of each point, and its threshold.
  const double small = 20 * slots + 36 * points;
  const double filter =
      shape.bytes_sums + slots * static_cast<double>(shape.rows.slot_bytes());
  const double filling =
      static_cast<double>(s.fill_slots) * s.fill_capacity * 8;
  // There are little more than k candidates for each point; this leaves room.
  const double pairs = points * static_cast<double>(in.k) * 1.25 * 12;
  const double redo = 4 * piece;
  const auto let_stay = [&] {
    const double left =
        bytes_usable - s.bytes_fixed - 20 * points - pairs - redo / 8;
    if (left > 0)
      s.stay_rows = std::min(all, static_cast<std::int64_t>(left / row_bytes) /
                                      kChunkUnit * kChunkUnit);
  };
  let_stay();
  // Lists are written from the memory of the points that stay, if they fit
  // there.
  const double written = static_cast<double>(s.write_rows * in.k) * 24;
  if (static_cast<double>(s.stay_rows * sizes.padded) * 8 < written) {
    s.bytes_fixed += written;
    let_stay();
  }
  const double reranking =
      20 * points + pairs +
      std::max(redo, static_cast<double>(s.stay_rows) * row_bytes);
  // The answer's pieces come last. While rows are filtered again, the filter's
  // own rows are still in memory with the candidates' numbers.
  const double unanswered = s.bytes_fixed - bytes_answer(in.num_points, in.k);
  const WideRows wide(most_slots, capacity, shape.rows.slot_bytes(), 0);
  // The filter's rows are made from streamed panels in the memory of the later
  // lists. With very many features the smallest panel is larger than those.
  const double made = 2.0 * kChunkUnit * row_bytes;
  s.bytes_peak =
      std::max({unanswered + small + filter + std::max(lists + filling, made),
                unanswered + small + filter + lists + 8 * points + pairs / 3 +
                    wide.bytes(),
                unanswered + small + lists + pairs, s.bytes_fixed + reranking});
  // With fewer points that stay, all points would be read very often.
  s.fits = s.bytes_peak <= bytes_usable &&
           s.stay_rows >= std::max(s.stream_rows, in.num_points / 64);
  return s;
}

}  // namespace

FilterStreaming row_range_streaming(const PlanInput& in,
                                    const FilterShape& shape,
                                    double bytes_usable, int multiprocessors) {
  FilterStreaming s;
  const SearchSizes sizes(in);
  const FilterBlocks blocks(in.num_points);
  const double slots = static_cast<double>(blocks.num_slots());
  const double points = static_cast<double>(in.num_points);
  const double row_bytes = static_cast<double>(sizes.padded) * 8 + 12;
  const double piece = bytes_of_piece(bytes_usable);
  const double k = static_cast<double>(in.k);
  s.capacity = shape.capacity;
  s.growth = 2.0;
  s.fill_blocks = shape.fill_blocks;
  s.bytes_usable = bytes_usable;
  s.stream_rows = s.prepare_rows = rows_of_panel(in, row_bytes, bytes_usable);
  s.redo_rows = rows_recomputed(in, s, row_bytes, bytes_usable);
  s.write_rows = rows_in(2 * piece, k * 20, kChunkUnit,
                         round_up(in.num_points, kChunkUnit));
  const double all_the_time =
      2 * static_cast<double>(s.stream_rows) * row_bytes +
      bytes_preparing(
          std::min(s.prepare_rows, std::max(in.num_points, in.num_given)),
          in.num_features, in.unit_dot) +
      in.bytes_made_from +
      (in.num_given > in.num_points ? 4 * static_cast<double>(in.num_given)
                                    : 0);

  // The filter's memory has three parts: the values of all columns and the
  // positions of the points' candidates; two panels; and the rows of a range
  // with their lists and values.
  const double block = static_cast<double>(kFilterBlock);
  const double form = static_cast<double>(shape.rows.row_bytes);
  const double values = 4.0 * static_cast<double>(shape.rows.floats_a_slot);
  s.panel_blocks = rows_in(1.5 * piece, block * form, 1,
                           std::min<std::int64_t>(blocks.count, 1 << 16));
  const double panels =
      2 * static_cast<double>(row_range_panel_bytes(
              s.panel_blocks, kFilterBlock * shape.rows.row_bytes));
  const double of_all = all_the_time + shape.bytes_sums + slots * (values + 4) +
                        20 * points + panels;
  // The lists' memory has room for one block of longer lists.
  const double longer =
      block * 8.0 * static_cast<double>(wider_capacity(s.capacity));
  const double lists = 8.0 * static_cast<double>(s.capacity);
  const double of_block =
      block * (form + values + lists + 48) +
      static_cast<double>(s.panel_blocks) * sizeof(ListedJob);
  const double left = bytes_usable - of_all;
  s.row_range_blocks = std::min(
      blocks.count, static_cast<std::int64_t>(std::max(0.0, left) / of_block));
  if (static_cast<double>(s.row_range_blocks) * block * lists < longer)
    s.row_range_blocks =
        std::min(s.row_range_blocks,
                 static_cast<std::int64_t>(std::max(0.0, left - longer) /
                                           (of_block - block * lists)));
  // The range is a whole number of waves over the multiprocessors.
  const std::int64_t turn = std::max(1, multiprocessors / 4);
  if (s.row_range_blocks > turn)
    s.row_range_blocks -= s.row_range_blocks % turn;
  const double row_range = static_cast<double>(s.row_range_blocks);
  const double filtering = of_all + row_range * (of_block - block * lists) +
                           std::max(longer, row_range * block * lists);

  // The exact step's memory: the place of each point and the position of its
  // pairs; for points that stay also their pairs.
  s.bytes_fixed = all_the_time + bytes_answer(s.write_rows, in.k);
  const double reranking = s.bytes_fixed + 4 * points + 32 * points;
  const double pairs = k * 1.25 * 12;
  const auto let_stay = [&](double held) {
    s.stay_rows = static_cast<std::int64_t>(std::max(0.0, bytes_usable - held) /
                                            (row_bytes + pairs)) /
                  kChunkUnit * kChunkUnit;
    s.stay_rows = std::min(s.stay_rows, round_up(in.num_points, kChunkUnit));
  };
  let_stay(reranking);
  const double written = static_cast<double>(s.write_rows) * k * 24;
  if (static_cast<double>(s.stay_rows * sizes.padded) * 8 < written) {
    s.bytes_fixed += written;
    let_stay(reranking + written);
  }
  const double redoing =
      all_the_time + 36 * points +
      static_cast<double>(s.redo_rows) *
          (row_bytes + static_cast<double>(whole_tiles(s.stream_rows)) * 8 +
           k * 20);
  s.bytes_peak =
      std::max({filtering, redoing,
                s.bytes_fixed + 36 * points +
                    static_cast<double>(s.stay_rows) * (row_bytes + pairs)});
  s.bytes_host = slots * form + points * pairs;
  // With shorter ranges all points would be streamed very often.
  const double fewest = points / 512;
  s.fits = s.bytes_peak <= bytes_usable && s.row_range_blocks > 0 &&
           row_range * block >= fewest && s.stay_rows > 0 &&
           static_cast<double>(s.stay_rows) >= fewest;
  return s;
}

FilterStreaming filter_streaming(const PlanInput& in, const FilterShape& shape,
                                 double bytes_usable) {
  // A list is cut to little more than k. A round of growth 1.5 adds about two
  // thirds of k, and for one row in very many half as much again.
  const std::int64_t least = std::max<std::int64_t>(64, in.k * 16 / 5);
  std::vector<std::int64_t> capacities;
  for (std::int64_t c = std::min<std::int64_t>(1024, shape.capacity); c > 128;
       c /= 2)
    capacities.push_back(c);
  for (std::int64_t c = 128; c >= 64; c -= 16) capacities.push_back(c);
  FilterStreaming best;
  for (const std::int64_t capacity : capacities) {
    if (capacity < least) break;
    best = streaming_with(in, shape, bytes_usable,
                          static_cast<std::int32_t>(capacity));
    if (best.fits) break;
  }
  return best;
}

}  // namespace cuda
}  // namespace fsknn
