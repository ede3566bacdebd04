#pragma once

// The end of a tile: which of its pairs reach a threshold, into the lists, or
// into one list of pairs.

#include <math_constants.h>

#include <cstdint>

#include "core/metrics.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/half_tile.cuh"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {

/// Whom pairs are met for: the rows' lists, those of rows and columns, or the
/// one list of pairs.
enum class MetFor { rows, both, pairs };

/// Which similarity is made of a sum, and for whom, and whether rows are of
/// several stretches: kernels are compiled for it.
template <Sign sign_, MetFor met_for, bool deep_>
struct PairKind {
  using Number = float;  ///< of tensor cores' sums of tiled rows
  static constexpr bool by_sums = false;
  static constexpr Sign sign = sign_;
  /// Whether columns have thresholds.
  static constexpr bool symmetric = met_for != MetFor::rows;
  static constexpr bool in_one_list = met_for == MetFor::pairs;
  static constexpr bool deep = deep_;
  static_assert(sign == Sign::signed_value || sign == Sign::absolute ||
                    sign == Sign::negative,
                "similarity() knows what is near");
  __device__ static float similarity(float r) {
    if (sign == Sign::absolute) return fabsf(r);
    return sign == Sign::negative ? -r : r;
  }
  __device__ static float similarity(float r, float) { return similarity(r); }
  __device__ static bool reaches(float r, float, float threshold) {
    return similarity(r) >= threshold;
  }
};

/// Of rows of bits. What both have is held against the rows' sums.
template <MetFor met_for>
struct BitKind {
  using Number = int;
  static constexpr bool by_sums = true;
  static constexpr bool symmetric = met_for != MetFor::rows;
  static constexpr bool in_one_list = met_for == MetFor::pairs;
  static constexpr bool deep = false;
  __device__ static float similarity(float common, float half_sums) {
    return overlap_of(common, half_sums);
  }
  __device__ static bool reaches(float common, float half_sums,
                                 float threshold) {
    return reaches_overlap(common, half_sums, threshold);
  }
};

/// By how far they are apart.
template <MetFor met_for>
struct BitDifferenceKind : BitKind<met_for> {
  __device__ static float similarity(float common, float half_sums) {
    return common - half_sums;
  }
  __device__ static bool reaches(float common, float half_sums,
                                 float threshold) {
    return similarity(common, half_sums) >= threshold;
  }
};

/// Where what is found goes.
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

/// What accept() needs to know of a thread's rows.
template <class Kind, int rows>
struct RowNumbers {
  float threshold[rows];
  float sum[Kind::by_sums ? rows : 1];

  __device__ RowNumbers(const PairWork& work, std::int32_t row0) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      threshold[i] = __ldg(row_thresholds<Kind>(work) + row0 + 8 * i);
      if (Kind::by_sums) sum[i] = __ldg(work.row_sums + row0 + 8 * i);
    }
  }
  __device__ float sum_of(int row) const {
    return Kind::by_sums ? sum[row] : 0.0f;
  }
};

/// And of columns: their thresholds, or which are there, from the thread's
/// first column on; of bits, their sums.
struct ColumnNumbers {
  const float* threshold;
  const float* sum;
};

/// A round without thresholds: every pair to its place in the row's list.
template <class Kind, class Pairs>
__device__ inline void write_all(const PairWork& work, const Pairs& pairs,
                                 const RowNumbers<Kind, Pairs::rows>& of_rows,
                                 const ColumnNumbers& of_columns,
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
        const float sums = Kind::by_sums ? of_rows.sum_of(Pairs::row_of(of)) +
                                               of_columns.sum[column]
                                         : 0.0f;
        return Kind::similarity(pairs.value(g, of), sums);
      };
      Candidate* const to =
          lists.entries +
          static_cast<std::int64_t>(row0 + 8 * Pairs::row_of(at)) *
              lists.capacity +
          first + across;
      // A thread's columns come in twos, and lists that are filled have an even
      // number of places.
      *reinterpret_cast<float4*>(to) = make_float4(
          similarity(at, across), __int_as_float(column0 + across),
          similarity(at + 1, across + 1), __int_as_float(column0 + across + 1));
    }
}

/// As write_all(), of the rows' nearest alone (FillRule), one after the other,
/// and how many: the columns that four neighbouring threads have of a row are
/// in eight parts, whose largest similarities are of different points; k of
/// these are as large as the k-th of them, and what the cut's errors leave
/// below that is dropped. Of sums that are floats.
template <class Kind, class Pairs>
__device__ inline void write_nearest(
    const PairWork& work, const Pairs& pairs,
    const RowNumbers<Kind, Pairs::rows>& of_rows,
    const ColumnNumbers& of_columns, std::int32_t row0, std::int32_t column0) {
  constexpr int in_group = 2 * Pairs::column_pairs;  // columns, of a row
  constexpr int columns = Pairs::groups * in_group, half = columns / 2;
  static_assert(columns == 64 && FillRule::most == 8, "two words");
  constexpr unsigned whole_warp = 0xffffffffu;
  const CandidateLists& lists = work.lists;
  const int lane = static_cast<int>(threadIdx.x) % 4;
  // Bit g * in_group + p * 2 + e: column 8 p + e of group g.
  const auto across_of = [](int bit) {
    return bit / in_group * Pairs::group_columns + bit % in_group / 2 * 8 +
           bit % 2;
  };
  const auto value_of = [&](int bit, int i) {
    return Kind::similarity(
        pairs.value(bit / in_group, bit % in_group / 2 * 4 + 2 * i + bit % 2),
        0.0f);
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
    // Not the point itself.
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
    // How many of the eight come before each of this thread's two.
    int before[2] = {most[1] > most[0], most[0] >= most[1]};
#pragma unroll
    for (int apart = 1; apart < 4; ++apart) {
      const bool first = (lane ^ apart) < lane;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const float other = __shfl_xor_sync(whole_warp, most[q], apart);
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
    for (int apart = 1; apart < 4; apart *= 2)
      leading = fmaxf(leading, __shfl_xor_sync(whole_warp, leading, apart));
    const float threshold =
        least_similarity(leading, work.fill_rule.twice_error, 0.0);
    unsigned keep[2] = {0, 0};
#pragma unroll
    for (int bit = 0; bit < columns; ++bit)
      if (value_of(bit, i) >= threshold) keep[bit / half] |= 1u << bit % half;
    // A threshold that is no number is padding's.
    const bool is_point = of_rows.threshold[i] == of_rows.threshold[i];
    keep[0] &= is_point ? may[0] : 0u;
    keep[1] &= is_point ? may[1] : 0u;
    const int own_count = __popc(keep[0]) + __popc(keep[1]);
    int end = own_count;
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
      const int other = __shfl_up_sync(whole_warp, end, apart, 4);
      if (lane >= apart) end += other;
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

/// One of 16 numbers in registers.
__device__ inline float pick(const float (&of)[16], int at) {
  float eight[8], four[4];
#pragma unroll
  for (int i = 0; i < 8; ++i) eight[i] = at & 1 ? of[2 * i + 1] : of[2 * i];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    four[i] = at & 2 ? eight[2 * i + 1] : eight[2 * i];
  const float low = at & 4 ? four[1] : four[0];
  const float high = at & 4 ? four[3] : four[2];
  return at & 8 ? high : low;
}

/// Pairs that reach their row's threshold or, by symmetry, their column's. A
/// threshold that is no number is padding's. column0: the thread's first
/// column.
template <class Kind, class Pairs>
__device__ inline void accept(const PairWork& work, const Pairs& pairs,
                              const RowNumbers<Kind, Pairs::rows>& of_rows,
                              const ColumnNumbers& of_columns,
                              std::int32_t row0, std::int32_t column0,
                              WarpQueue& queue) {
  const CandidateLists& lists = work.lists;
  const auto of_row = [](int row) {
    unsigned bits = 0;
#pragma unroll
    for (int at = 0; at < 16; ++at)
      if (Pairs::row_of(at) == row) bits |= 1u << at;
    return bits;
  };
  // Loaded some groups at once: one wait for all. With sums a group has twice
  // as many numbers, and half as many groups are loaded.
  constexpr int groups_loaded = (Kind::by_sums ? 4 : 8) / Pairs::column_pairs;
  float2 loaded[groups_loaded][Pairs::column_pairs];
  float2 loaded_sums[Kind::by_sums ? groups_loaded : 1][Pairs::column_pairs];
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g) {
    if (Kind::symmetric && g % groups_loaded == 0) {
#pragma unroll
      for (int q = 0; q < groups_loaded; ++q)
#pragma unroll
        for (int p = 0; p < Pairs::column_pairs; ++p)
          loaded[q][p] = *reinterpret_cast<const float2*>(
              of_columns.threshold + (g + q) * Pairs::group_columns + 8 * p);
    }
    if (Kind::by_sums && g % groups_loaded == 0) {
#pragma unroll
      for (int q = 0; q < groups_loaded; ++q)
#pragma unroll
        for (int p = 0; p < Pairs::column_pairs; ++p)
          loaded_sums[Kind::by_sums ? q : 0][p] =
              *reinterpret_cast<const float2*>(
                  of_columns.sum + (g + q) * Pairs::group_columns + 8 * p);
    }
    const float2(&sum_of_column)[Pairs::column_pairs] =
        loaded_sums[Kind::by_sums ? g % groups_loaded : 0];
    const auto sums = [&](int at) {
      const float2 two = sum_of_column[Pairs::column_of(at) / 8];
      return Kind::by_sums ? of_rows.sum_of(Pairs::row_of(at)) +
                                 (at % 2 == 0 ? two.x : two.y)
                           : 0.0f;
    };
    const float2(&column)[Pairs::column_pairs] = loaded[g % groups_loaded];
    bool any = false;
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const float2 two = column[Pairs::column_of(at) / 8];
      // Against each row's own threshold: one for all of the thread's rows,
      // their lowest, saves a minimum but lets so many more in that Euclidean
      // graphs took a third longer (H200, n = 100,000, d = 295).
      const float for_row = of_rows.threshold[Pairs::row_of(at)];
      any |= Kind::reaches(pairs.value(g, at), sums(at),
                           Kind::symmetric
                               ? fminf(for_row, at % 2 == 0 ? two.x : two.y)
                               : for_row);
    }
    if (!__any_sync(0xffffffffu, any)) continue;
    if constexpr (Kind::in_one_list) {
      unsigned reach = 0;
#pragma unroll
      for (int at = 0; at < 16; ++at) {
        const float2 two = column[Pairs::column_of(at) / 8];
        if (Kind::reaches(pairs.value(g, at), sums(at),
                          fminf(of_rows.threshold[Pairs::row_of(at)],
                                at % 2 == 0 ? two.x : two.y)))
          reach |= 1u << at;
      }
      queue.push(work.pairs, reach, [&](int at) -> Found {
        const int across = g * Pairs::group_columns + Pairs::column_of(at);
        return found_pair(work.pairs, row0 + 8 * Pairs::row_of(at),
                          column0 + across, of_columns.threshold[across]);
      });
      continue;
    }
    // What reaches a threshold is found first, then taken one by one. Bit `at`
    // is for the row, the same and 16 for the column.
    float s[16];
    unsigned left = 0;
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const float2 two = column[Pairs::column_of(at) / 8];
      const float value = pairs.value(g, at);
      s[at] = Kind::similarity(value, sums(at));
      if (Kind::reaches(value, sums(at), of_rows.threshold[Pairs::row_of(at)]))
        left |= 1u << at;
      if (Kind::symmetric &&
          Kind::reaches(value, sums(at), at % 2 == 0 ? two.x : two.y))
        left |= 0x10000u << at;
    }
    // Padding's rows are for no column.
#pragma unroll
    for (int i = 0; Kind::symmetric && i < Pairs::rows; ++i)
      if (!(of_rows.threshold[i] == of_rows.threshold[i]))
        left &= ~(of_row(i) << 16);
    queue.push(lists, left, [&](int bit) -> Found {
      const int at = bit % 16;
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      const std::int32_t r = row0 + 8 * Pairs::row_of(at);
      const std::int32_t c = column0 + across;
      if (bit >= 16) return {c, r, pick(s, at)};
      const float threshold = of_columns.threshold[across];
      const bool there =
          Kind::symmetric ? threshold == threshold : threshold != 0.0f;
      return {there ? r : WarpQueue::none, c, pick(s, at)};
    });
  }
}

/// [column slots] what accept() needs to know of columns: their thresholds, or
/// which are there.
template <class Kind>
__device__ inline const float* column_numbers(const PairWork& work) {
  if (Kind::in_one_list) return work.pairs.column_thresholds;
  return Kind::symmetric ? work.lists.thresholds : work.column_there;
}

}  // namespace cuda
}  // namespace fsknn
