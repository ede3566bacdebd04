#pragma once

// The end of a tile: appends the pairs that reach a threshold to the lists, or
// to one list of pairs.

#include <math_constants.h>

#include <cstdint>

#include "cuda/filter/half_tile.hpp"
#include "cuda/filter/pair_kinds.cuh"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {

/// Returns the position of a lane's first sum in a product of tensor cores.
struct LanePlace {
  __device__ static int row(int lane) { return lane / 4; }
  __device__ static int column(int lane) { return lane % 4 * 2; }
};

/// Returns the destination of the accepted pairs.
template <class Kind>
__device__ inline const auto& list_of(const PairWork& work) {
  if constexpr (Kind::in_one_list)
    return work.pairs;
  else
    return work.lists;
}

/// [row slots]
template <class Kind>
__device__ inline const float* row_thresholds(const PairWork& work) {
  return Kind::in_one_list ? work.pairs.row_thresholds : work.lists.thresholds;
}

template <class Kind>
__device__ inline float3 numbers_of_row(const PairWork& work,
                                        std::int32_t row) {
  return {Kind::numbers > 0 ? __ldg(work.row_numbers[0] + row) : 0.0f,
          Kind::numbers > 1 ? __ldg(work.row_numbers[1] + row) : 0.0f,
          Kind::numbers > 2 ? __ldg(work.row_numbers[2] + row) : 0.0f};
}

/// The numbers of a thread's rows that accept() needs.
template <class Kind, int rows>
struct RowNumbers {
  float threshold[rows];
  float3 number[rows];

  __device__ RowNumbers(const PairWork& work, std::int32_t row0) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      threshold[i] = __ldg(row_thresholds<Kind>(work) + row0 + 8 * i);
      number[i] = numbers_of_row<Kind>(work, row0 + 8 * i);
    }
  }
};

/// The same for columns, from the thread's first one on: their thresholds or
/// whether they are points, and their numbers.
template <class Kind>
struct ColumnNumbers {
  const float* threshold;
  const float* number[kMostNumbers];

  __device__ float3 numbers_of(int column) const {
    return {Kind::numbers > 0 ? number[0][column] : 0.0f,
            Kind::numbers > 1 ? number[1][column] : 0.0f,
            Kind::numbers > 2 ? number[2][column] : 0.0f};
  }
};

/// Writes every pair to its place in the row's list, in a round without
/// thresholds.
template <class Kind, class Pairs>
__device__ inline void write_all(const PairWork& work, const Pairs& pairs,
                                 const RowNumbers<Kind, Pairs::rows>& of_rows,
                                 const ColumnNumbers<Kind>& of_columns,
                                 std::int32_t row0, std::int32_t column0,
                                 std::int64_t delta) {
  const CandidateLists& lists = work.lists;
  const std::int64_t first = delta * FilterTile::columns + pairs.first_column;
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g)
#pragma unroll
    for (int at = 0; at < 16; at += 2) {
      static_assert(sizeof(Candidate) == 8, "two at a time");
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      const auto similarity = [&](int of, int column) {
        return Kind::similarity(Kind::value(pairs.value(g, of)),
                                of_rows.number[Pairs::row_of(of)],
                                of_columns.numbers_of(column));
      };
      Candidate* const to =
          lists.entries +
          static_cast<std::int64_t>(row0 + 8 * Pairs::row_of(at)) *
              lists.capacity +
          first + across;
      // A thread's columns come in pairs, and lists that are filled have an
      // even number of places.
      *reinterpret_cast<float4*>(to) = make_float4(
          similarity(at, across), __int_as_float(column0 + across),
          similarity(at + 1, across + 1), __int_as_float(column0 + across + 1));
    }
}

/// Does what write_all() does, but writes only the rows' nearest (FillRule),
/// and counts them. Four adjacent threads hold a row's columns in eight parts,
/// whose largest similarities belong to different points. k of these reach the
/// k-th of them; a pair is dropped if it is lower even after allowing for the
/// cut's errors. Only for sums that are floats.
template <class Kind, class Pairs>
__device__ inline void write_nearest(
    const PairWork& work, const Pairs& pairs,
    const RowNumbers<Kind, Pairs::rows>& of_rows,
    const ColumnNumbers<Kind>& of_columns, std::int32_t row0,
    std::int32_t column0) {
  constexpr int in_group = 2 * Pairs::column_pairs;  // columns, for one row
  constexpr int columns = Pairs::groups * in_group, half = columns / 2;
  static_assert(columns == 64 && FillRule::most == 8, "two words");
  constexpr unsigned whole_warp = 0xffffffffu;
  const CandidateLists& lists = work.lists;
  const int lane = static_cast<int>(threadIdx.x) % 4;
  // Bit g * in_group + p * 2 + e stands for column 8 p + e of group g.
  const auto across_of = [](int bit) {
    return bit / in_group * Pairs::group_columns + bit % in_group / 2 * 8 +
           bit % 2;
  };
  const auto value_of = [&](int bit, int i) {
    const int at = bit % in_group / 2 * 4 + 2 * i + bit % 2;
    return Kind::similarity(Kind::value(pairs.value(bit / in_group, at)),
                            float3(), float3());
  };
  unsigned are_there[2] = {0, 0};
#pragma unroll
  for (int bit = 0; bit < columns; bit += 2) {
    const float2 two =
        *reinterpret_cast<const float2*>(of_columns.threshold + across_of(bit));
    are_there[bit / half] |=
        ((two.x != 0.0f ? 1u : 0u) | (two.y != 0.0f ? 2u : 0u)) << bit % half;
  }
#pragma unroll
  for (int i = 0; i < Pairs::rows; ++i) {
    const std::int32_t row = row0 + 8 * i;
    float most[2] = {-CUDART_INF_F, -CUDART_INF_F};
    unsigned may[2] = {are_there[0], are_there[1]};
    // Excludes the point itself.
    const unsigned own = static_cast<unsigned>(row - column0);
    if (own < static_cast<unsigned>(FilterTile::columns) && own % 8 < 2) {
      const int bit =
          static_cast<int>(own / Pairs::group_columns) * in_group +
          static_cast<int>(own % Pairs::group_columns / 8 * 2 + own % 2);
      may[0] &= bit < half ? ~(1u << bit) : ~0u;
      may[1] &= bit < half ? ~0u : ~(1u << (bit - half));
    }
#pragma unroll
    for (int bit = 0; bit < columns; ++bit)
      if (may[bit / half] >> bit % half & 1u)
        most[bit / half] = fmaxf(most[bit / half], value_of(bit, i));
    // Counts how many of the eight precede each of this thread's two.
    int before[2] = {most[1] > most[0], most[0] >= most[1]};
#pragma unroll
    for (int gap = 1; gap < 4; ++gap) {
      const bool first = (lane ^ gap) < lane;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const float other = __shfl_xor_sync(whole_warp, most[q], gap);
#pragma unroll
        for (int p = 0; p < 2; ++p)
          before[p] += other > most[p] || (first && other == most[p]);
      }
    }
    float leading = -CUDART_INF_F;
#pragma unroll
    for (int q = 0; q < 2; ++q)
      if (before[q] == work.fill_rule.k - 1) leading = most[q];
#pragma unroll
    for (int gap = 1; gap < 4; gap *= 2)
      leading = fmaxf(leading, __shfl_xor_sync(whole_warp, leading, gap));
    const float threshold =
        least_similarity(leading, work.fill_rule.twice_error, 0.0);
    unsigned keep[2] = {0, 0};
#pragma unroll
    for (int bit = 0; bit < columns; ++bit)
      if (value_of(bit, i) >= threshold) keep[bit / half] |= 1u << bit % half;
    // A NaN threshold marks padding.
    const bool is_point = of_rows.threshold[i] == of_rows.threshold[i];
    keep[0] &= is_point ? may[0] : 0u;
    keep[1] &= is_point ? may[1] : 0u;
    const int own_count = __popc(keep[0]) + __popc(keep[1]);
    int end = own_count;
#pragma unroll
    for (int gap = 1; gap < 4; gap *= 2) {
      const int other = __shfl_up_sync(whole_warp, end, gap, 4);
      if (lane >= gap) end += other;
    }
    Candidate* to = lists.entries +
                    static_cast<std::int64_t>(row) * lists.capacity + end -
                    own_count;
#pragma unroll
    for (int bit = 0; bit < columns; ++bit)
      if (keep[bit / half] >> bit % half & 1u)
        *to++ = {value_of(bit, i), column0 + across_of(bit)};
    if (lane == 3 && is_point) lists.counts[row] = end;
  }
}

/// Calls take(group) for group g of a thread's values. The group must be a
/// compile-time constant, since registers cannot be indexed. Lanes may differ
/// in g.
template <class Pairs, class Take>
__device__ inline void with_group(int g, Take take) {
#pragma unroll
  for (int of = 0; of < Pairs::groups; ++of)
    if (of == g) take(of);
}

/// Returns element i of n in registers.
template <int n, class T>
__device__ inline T element(const T (&of)[n], int i) {
  T found = of[0];
#pragma unroll
  for (int q = 1; q < n; ++q) found = q == i ? of[q] : found;
  return found;
}

/// A pair that a thread examines, and the lists that it may enter.
template <class Kind>
struct MetPair {
  static constexpr unsigned for_row = 1, for_column = 2;
  std::int32_t r = 0, c = 0;
  float similarity = 0.0f, column_threshold = 0.0f;

  /// value: of the tensor cores' sum. Returns the bits of the lists that accept
  /// the pair; for the one list, the row's bit.
  __device__ unsigned meet(const PairWork& work, float value, std::int32_t row,
                           std::int32_t column,
                           const ColumnNumbers<Kind>& of_columns, int across) {
    r = row;
    c = column;
    const float row_threshold = __ldg(row_thresholds<Kind>(work) + r);
    column_threshold = of_columns.threshold[across];
    const float3 of_row = numbers_of_row<Kind>(work, r);
    const float3 of_column = of_columns.numbers_of(across);
    if constexpr (Kind::in_one_list) {
      return Kind::reaches(value, of_row, of_column,
                           fminf(row_threshold, column_threshold))
                 ? for_row
                 : 0;
    } else {
      similarity = Kind::similarity(value, of_row, of_column);
      // Padding enters no list.
      const bool is_column = Kind::symmetric
                                 ? column_threshold == column_threshold
                                 : column_threshold != 0.0f;
      unsigned whom = 0;
      if (is_column && Kind::reaches(value, of_row, of_column, row_threshold))
        whom |= for_row;
      if (Kind::symmetric && row_threshold == row_threshold &&
          Kind::reaches(value, of_row, of_column, column_threshold))
        whom |= for_column;
      return whom;
    }
  }
  __device__ Found entry(const PairWork& work, unsigned whom) const {
    if constexpr (Kind::in_one_list)
      return found_pair(work.pairs, r, c, column_threshold);
    else
      return whom == for_row ? Found{r, c, similarity}
                             : Found{c, r, similarity};
  }
};

/// The position of a tile, which a thread needs to collect its pairs.
template <class Kind>
struct TilePlace {
  const PairWork& work;
  const ColumnNumbers<Kind>& of_columns;
  std::int32_t row0, column0;
  SpreadQueue& queue;
};

/// Where many lanes have a pair, each lane collects its own from group g (-1:
/// none), one at a time. It selects among the raw sums of the tensor cores:
/// converting all to floats first would need both forms in registers, which are
/// too few. Stops when few lanes have pairs left, and returns which.
template <class Kind, class Pairs>
__device__ inline unsigned take_own(const TilePlace<Kind>& tile,
                                    const Pairs& pairs, int g) {
  constexpr unsigned whole_warp = 0xffffffffu;
  typename Pairs::Number own[16] = {};
  with_group<Pairs>(g, [&](int of) {
#pragma unroll
    for (int at = 0; at < 16; ++at) own[at] = pairs.value(of, at);
  });
  const std::int32_t across0 = max(g, 0) * Pairs::group_columns;
  MetPair<Kind> met;
  unsigned left = 0;
#pragma unroll
  for (int at = 0; at < 16; ++at) {
    const int across = across0 + Pairs::column_of(at);
    if (met.meet(tile.work, Kind::value(own[at]),
                 tile.row0 + 8 * Pairs::row_of(at), tile.column0 + across,
                 tile.of_columns, across) != 0)
      left |= 1u << at;
  }
  if (g < 0) left = 0;
#pragma unroll 1
  while (__popc(__ballot_sync(whole_warp, left != 0)) > SpreadGroups::most) {
    const int at = max(__ffs(static_cast<int>(left)) - 1, 0);
    const int across = across0 + Pairs::column_of(at);
    const unsigned whom =
        met.meet(tile.work, Kind::value(element(own, at)),
                 tile.row0 + 8 * Pairs::row_of(at), tile.column0 + across,
                 tile.of_columns, across);
    tile.queue.push(
        list_of<Kind>(tile.work), left != 0 ? whom : 0u,
        [&](int bit) -> Found { return met.entry(tile.work, 1u << bit); });
    left &= left - 1;
  }
  return left;
}

/// Where few lanes have pairs left, however many: these lanes write the values
/// of group g to shared memory, and 16 threads examine each lane's, one a
/// value. left: the values to examine.
template <class Kind, class Pairs>
__device__ inline void take_spread(const TilePlace<Kind>& tile,
                                   const Pairs& pairs, int g, unsigned left) {
  constexpr unsigned whole_warp = 0xffffffffu;
  using Number = typename Pairs::Number;
  constexpr int turns = SpreadGroups::most / 2;
  static_assert(SpreadGroups::most % 2 == 0 && Pairs::groups <= 8 &&
                    sizeof(Number) == sizeof(std::uint32_t),
                "as SpreadGroups says");
  const int lane = static_cast<int>(threadIdx.x) % 32, at = lane % 16;
  SpreadGroups& spread = tile.queue.spread();
  const unsigned lanes = __ballot_sync(whole_warp, left != 0);
  const int place = __popc(lanes & ((1u << lane) - 1));
  if (left != 0) {
    Number* const to = reinterpret_cast<Number*>(spread.values[place]);
    with_group<Pairs>(g, [&](int of) {
#pragma unroll
      for (int v = 0; v < 16; ++v) to[v] = pairs.value(of, v);
    });
    spread.from[place] = static_cast<unsigned>(lane | g << 5) | left << 16;
  }
  __syncwarp();
  MetPair<Kind> met[turns];
  unsigned found = 0;  // two bits a turn
#pragma unroll
  for (int t = 0; t < turns; ++t) {
    if (2 * t >= __popc(lanes)) break;  // for all threads of the warp
    const int group = 2 * t + lane / 16;
    const bool there = group < __popc(lanes);
    const unsigned from = there ? spread.from[group] : 0;
    const Number value =
        there ? reinterpret_cast<const Number*>(spread.values[group])[at]
              : Number();
    const int of_lane = static_cast<int>(from % 32);
    const int across = LanePlace::column(of_lane) - LanePlace::column(lane) +
                       static_cast<int>(from >> 5 & 7) * Pairs::group_columns +
                       Pairs::column_of(at);
    const unsigned whom =
        met[t].meet(tile.work, Kind::value(value),
                    tile.row0 + LanePlace::row(of_lane) - LanePlace::row(lane) +
                        8 * Pairs::row_of(at),
                    tile.column0 + across, tile.of_columns, across);
    if ((from >> (16 + at) & 1) != 0) found |= whom << 2 * t;
  }
  tile.queue.push(list_of<Kind>(tile.work), found, [&](int bit) -> Found {
    return element(met, bit / 2).entry(tile.work, 1u << bit % 2);
  });
  __syncwarp();  // the spread values have been read
}

/// Collects the pairs of all lanes, one group of each lane at a time. groups:
/// those in which this lane has a pair. Usually few lanes have one. Many lanes
/// do in a search's first rounds, or where bounds are wide. A few lanes have
/// many if a point is near to almost all.
template <class Kind, class Pairs>
__device__ inline void take_found(const TilePlace<Kind>& tile,
                                  const Pairs& pairs, unsigned groups) {
  constexpr unsigned whole_warp = 0xffffffffu;
#pragma unroll 1
  for (unsigned lanes; (lanes = __ballot_sync(whole_warp, groups != 0)) != 0;) {
    const int g = __ffs(static_cast<int>(groups)) - 1;  // -1: none
    groups &= groups - 1;
    const unsigned left = __popc(lanes) > SpreadGroups::most
                              ? take_own<Kind>(tile, pairs, g)
                          : g >= 0 ? 0xffffu
                                   : 0u;
    take_spread<Kind>(tile, pairs, g, left);
  }
}

/// Collects pairs that reach their row's threshold or, by symmetry, their
/// column's. A NaN threshold marks padding. column0: the thread's first column.
template <class Kind, class Pairs>
__device__ inline void accept(const PairWork& work, const Pairs& pairs,
                              const RowNumbers<Kind, Pairs::rows>& of_rows,
                              const ColumnNumbers<Kind>& of_columns,
                              std::int32_t row0, std::int32_t column0,
                              SpreadQueue& queue) {
  // Several groups are loaded at once, which then wait together. Fewer fit
  // where a column has several numbers.
  constexpr int groups_loaded =
      (Kind::numbers > 0 ? 4 : 8) / Pairs::column_pairs;
  float2 threshold[groups_loaded][Pairs::column_pairs];
  float2 number[kMostNumbers][groups_loaded][Pairs::column_pairs];
  unsigned mine = 0;  // groups in which this thread has a pair
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g) {
    if (g % groups_loaded == 0) {
#pragma unroll
      for (int q = 0; q < groups_loaded; ++q)
#pragma unroll
        for (int p = 0; p < Pairs::column_pairs; ++p) {
          const int first = (g + q) * Pairs::group_columns + 8 * p;
          const auto two = [&](const float* of) {
            return *reinterpret_cast<const float2*>(of + first);
          };
          if (Kind::symmetric) threshold[q][p] = two(of_columns.threshold);
#pragma unroll
          for (int which = 0; which < Kind::numbers; ++which)
            number[which][q][p] = two(of_columns.number[which]);
        }
    }
    bool any = false;
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      constexpr int turn = groups_loaded;
      const int p = Pairs::column_of(at) / 8;
      const auto own = [&](const float2& two) {
        return at % 2 == 0 ? two.x : two.y;
      };
      const float3 column = {
          Kind::numbers > 0 ? own(number[0][g % turn][p]) : 0.0f,
          Kind::numbers > 1 ? own(number[1][g % turn][p]) : 0.0f,
          Kind::numbers > 2 ? own(number[2][g % turn][p]) : 0.0f};
      // Compares with each row's own threshold. Using the lowest of the
      // thread's rows for all saves a minimum, but lets many more pairs pass:
      // Euclidean graphs took a third longer (H200, n = 100,000, d = 295).
      const float for_row = of_rows.threshold[Pairs::row_of(at)];
      any |= Kind::reaches(Kind::value(pairs.value(g, at)),
                           of_rows.number[Pairs::row_of(at)], column,
                           Kind::symmetric
                               ? fminf(for_row, own(threshold[g % turn][p]))
                               : for_row);
    }
    if (any) mine |= 1u << g;
  }
  // This code must exist once: repeated for each group it exceeds the
  // instruction cache of a multiprocessor, which then stalls.
  take_found<Kind>(TilePlace<Kind>{work, of_columns, row0, column0, queue},
                   pairs, mine);
}

/// [column slots] the thresholds of columns, or whether they are points, for
/// accept().
template <class Kind>
__device__ inline const float* column_numbers(const PairWork& work) {
  if (Kind::in_one_list) return work.pairs.column_thresholds;
  return Kind::symmetric ? work.lists.thresholds : work.column_there;
}

}  // namespace cuda
}  // namespace fsknn
