#pragma once

// The end of a tile: which of its pairs reach a threshold, into the lists.

#include <cstdint>

#include "core/metrics.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/half_tile.cuh"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {

/// Which similarity is made of a sum, and for whom, and whether rows are of
/// several stretches: kernels are compiled for it.
template <Sign sign_, bool symmetric_, bool deep_>
struct PairKind {
  using Number = float;
  static constexpr bool by_sums = false;
  static constexpr Sign sign = sign_;
  static constexpr bool symmetric = symmetric_;
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
template <bool symmetric_>
struct BitKind {
  using Number = int;
  static constexpr bool by_sums = true;
  static constexpr bool symmetric = symmetric_;
  static constexpr bool deep = false;
  __device__ static float similarity(int common, float half_sums) {
    return overlap_of(static_cast<float>(common), half_sums);
  }
  __device__ static bool reaches(int common, float half_sums, float threshold) {
    return reaches_overlap(static_cast<float>(common), half_sums, threshold);
  }
};

/// What accept() needs to know of a thread's rows.
template <class Kind, int rows>
struct RowNumbers {
  float threshold[rows];
  float sum[Kind::by_sums ? rows : 1];

  __device__ RowNumbers(const HalfWork& work, std::int32_t row0) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      threshold[i] = __ldg(work.lists.thresholds + row0 + 8 * i);
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
__device__ inline void write_all(const HalfWork& work, const Pairs& pairs,
                                 const RowNumbers<Kind, Pairs::rows>& of_rows,
                                 const ColumnNumbers& of_columns,
                                 std::int32_t row0, std::int32_t column0,
                                 std::int64_t delta) {
  const CandidateLists& lists = work.lists;
  const std::int64_t first = delta * FilterTile::columns + pairs.first_column;
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g)
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      const float sums = Kind::by_sums ? of_rows.sum_of(Pairs::row_of(at)) +
                                             of_columns.sum[across]
                                       : 0.0f;
      lists.entries[static_cast<std::int64_t>(row0 + 8 * Pairs::row_of(at)) *
                        lists.capacity +
                    first + across] = {
          Kind::similarity(pairs.value(g, at), sums), column0 + across};
    }
}

/// Pairs that reach their row's threshold or, by symmetry, their column's. A
/// threshold that is no number is padding's. column0: the thread's first
/// column.
template <class Kind, class Pairs>
__device__ inline void accept(const HalfWork& work, const Pairs& pairs,
                              const RowNumbers<Kind, Pairs::rows>& of_rows,
                              const ColumnNumbers& of_columns,
                              std::int32_t row0, std::int32_t column0,
                              WarpQueue& queue) {
  const CandidateLists& lists = work.lists;
  // Loaded some groups at once: one wait for all.
  constexpr int groups_loaded = 8 / Pairs::column_pairs;
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
    // What reaches a threshold is found first, then taken one by one. Bit `at`
    // is for the row, the same and 16 for the column.
    float s[16];
    unsigned left = 0;
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const float2 two = column[Pairs::column_of(at) / 8];
      const auto value = pairs.value(g, at);
      s[at] = Kind::similarity(value, sums(at));
      if (Kind::reaches(value, sums(at), of_rows.threshold[Pairs::row_of(at)]))
        left |= 1u << at;
      if (Kind::symmetric &&
          Kind::reaches(value, sums(at), at % 2 == 0 ? two.x : two.y))
        left |= 0x10000u << at;
    }
    queue.push(lists, left, [&](int bit) -> Found {
      const int at = bit % 16;
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      const std::int32_t r = row0 + 8 * Pairs::row_of(at);
      const std::int32_t c = column0 + across;
      if (bit >= 16) {
        const float threshold = __ldg(lists.thresholds + r);
        return {threshold == threshold ? c : WarpQueue::none, r, s[at]};
      }
      const float threshold = of_columns.threshold[across];
      const bool there =
          Kind::symmetric ? threshold == threshold : threshold != 0.0f;
      return {there ? r : WarpQueue::none, c, s[at]};
    });
  }
}

/// [column slots] what accept() needs to know of columns: their thresholds, or
/// which are there.
template <class Kind>
__device__ inline const float* column_numbers(const HalfWork& work) {
  return Kind::symmetric ? work.lists.thresholds : work.column_there;
}

}  // namespace cuda
}  // namespace fsknn
