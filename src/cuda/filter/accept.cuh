#pragma once

// The end of a tile: which of its pairs reach a threshold, into the lists, or
// into one list of pairs.

#include <cstdint>

#include "core/metrics.hpp"
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

/// A round without thresholds: every pair to its place in the row's list.
template <class Kind, class Pairs>
__device__ inline void write_all(const PairWork& work, const Pairs& pairs,
                                 std::int32_t row0, std::int32_t column0,
                                 std::int64_t delta) {
  const CandidateLists& lists = work.lists;
  const std::int64_t first = delta * FilterTile::columns + pairs.first_column;
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g)
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      lists.entries[static_cast<std::int64_t>(row0 + 8 * Pairs::row_of(at)) *
                        lists.capacity +
                    first + across] = {Kind::similarity(pairs.value(g, at)),
                                       column0 + across};
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
/// threshold that is no number is padding's. of_columns: what column_numbers()
/// says, from the thread's first column on; column0: that column.
template <class Kind, class Pairs>
__device__ inline void accept(const PairWork& work, const Pairs& pairs,
                              const float (&row_threshold)[Pairs::rows],
                              const float* of_columns, std::int32_t row0,
                              std::int32_t column0, WarpQueue& queue) {
  const CandidateLists& lists = work.lists;
  const auto of_row = [](int row) {
    unsigned bits = 0;
#pragma unroll
    for (int at = 0; at < 16; ++at)
      if (Pairs::row_of(at) == row) bits |= 1u << at;
    return bits;
  };
  // Loaded some groups at once: one wait for all.
  constexpr int groups_loaded = 8 / Pairs::column_pairs;
  float2 loaded[groups_loaded][Pairs::column_pairs];
#pragma unroll
  for (int g = 0; g < Pairs::groups; ++g) {
    if (Kind::symmetric && g % groups_loaded == 0) {
#pragma unroll
      for (int q = 0; q < groups_loaded; ++q)
#pragma unroll
        for (int p = 0; p < Pairs::column_pairs; ++p)
          loaded[q][p] = *reinterpret_cast<const float2*>(
              of_columns + (g + q) * Pairs::group_columns + 8 * p);
    }
    const float2(&column)[Pairs::column_pairs] = loaded[g % groups_loaded];
    bool any = false;
#pragma unroll
    for (int at = 0; at < 16; ++at) {
      const float2 two = column[Pairs::column_of(at) / 8];
      // Against each row's own threshold: one for all of the thread's rows,
      // their lowest, saves a minimum but lets so many more in that Euclidean
      // graphs took a third longer (H200, n = 100,000, d = 295).
      const float for_row = row_threshold[Pairs::row_of(at)];
      any |= Kind::similarity(pairs.value(g, at)) >=
             (Kind::symmetric ? fminf(for_row, at % 2 == 0 ? two.x : two.y)
                              : for_row);
    }
    if (!__any_sync(0xffffffffu, any)) continue;
    if constexpr (Kind::in_one_list) {
      unsigned reach = 0;
#pragma unroll
      for (int at = 0; at < 16; ++at) {
        const float2 two = column[Pairs::column_of(at) / 8];
        if (Kind::similarity(pairs.value(g, at)) >=
            fminf(row_threshold[Pairs::row_of(at)],
                  at % 2 == 0 ? two.x : two.y))
          reach |= 1u << at;
      }
      queue.push(work.pairs, reach, [&](int at) -> Found {
        const int across = g * Pairs::group_columns + Pairs::column_of(at);
        return found_pair(work.pairs, row0 + 8 * Pairs::row_of(at),
                          column0 + across, of_columns[across]);
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
      s[at] = Kind::similarity(pairs.value(g, at));
      if (s[at] >= row_threshold[Pairs::row_of(at)]) left |= 1u << at;
      if (Kind::symmetric && s[at] >= (at % 2 == 0 ? two.x : two.y))
        left |= 0x10000u << at;
    }
    // Padding's rows are for no column.
#pragma unroll
    for (int i = 0; Kind::symmetric && i < Pairs::rows; ++i)
      if (!(row_threshold[i] == row_threshold[i])) left &= ~(of_row(i) << 16);
    queue.push(lists, left, [&](int bit) -> Found {
      const int at = bit % 16;
      const int across = g * Pairs::group_columns + Pairs::column_of(at);
      const std::int32_t r = row0 + 8 * Pairs::row_of(at);
      const std::int32_t c = column0 + across;
      if (bit >= 16) return {c, r, pick(s, at)};
      const float threshold = of_columns[across];
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
