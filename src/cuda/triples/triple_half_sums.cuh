#pragma once

// Sums of halves, added by tensor cores. A is a tile of maxima, 16 columns by
// 16 features, computed in registers for one row. B has ones in one of its 8
// columns, so that the sums of 8 rows become adjacent. Maxima of non-negative
// halves are those of their bits as 16-bit whole numbers.

#include "cuda/filter/warp_pairs.cuh"
#include "cuda/triples/triple_tiles.cuh"

namespace fsknn {
namespace cuda {

/// Eight warps, 4 by 2, each with 16 rows by 64 columns.
struct TripleWarps {
  static constexpr int rows = 16, columns = 64;
  static constexpr int down = TripleBlock::rows / rows;
  static constexpr int across = TripleBlock::columns / columns;
  static constexpr int groups = columns / 16, octets = rows / 8;
  /// The features that tensor cores add before the result joins the previous
  /// sum.
  static constexpr int feature_range_parts =
      static_cast<int>(kFilterFeatureRange) / TripleBlock::depth;
  static_assert(down * across * 32 == TripleThreads::threads,
                "a warp for each");
};

/// See triple_tiles.cuh: for 4 groups of 16 columns and 2 of 8 rows, in the
/// layout of the products. ranges: for more than kMostInOne features.
template <bool feature_ranges>
class TripleHalfSums {
 public:
  static constexpr int rows = 2 * TripleWarps::octets;
  static constexpr int columns = 2 * TripleWarps::groups;

  __device__ TripleHalfSums() {
    lane_ = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row0_ = warp % TripleWarps::down * TripleWarps::rows;
    column0_ = warp / TripleWarps::down * TripleWarps::columns;
    for_all([&](float& sum, float& before) {
      sum = 0.0f;
      if (feature_ranges) before = 0.0f;
    });
  }
  __device__ int row(int i) const {
    return row0_ + i / 2 * 8 + lane_ % 4 * 2 + i % 2;
  }
  __device__ int column(int j) const {
    return column0_ + j / 2 * 16 + lane_ / 4 + j % 2 * 8;
  }
  __device__ float at(int i, int j) const {
    return of_[j / 2][i / 2][j % 2 * 2 + i % 2];
  }

  __device__ void add(unsigned stage) {
    constexpr int row_bytes = TripleThreads::row_bytes;
    const int g = lane_ / 4, t = lane_ % 4;
    const unsigned rows =
        stage + row0_ * row_bytes + static_cast<unsigned>(t) * 16;
    const unsigned columns = stage +
                             (TripleBlock::rows + column0_ + g) * row_bytes +
                             static_cast<unsigned>(t) * 16;
    uint4 low[TripleWarps::groups], high[TripleWarps::groups];
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c) {
      low[c] = shared_piece(columns + c * 16 * row_bytes);
      high[c] = shared_piece(columns + (c * 16 + 8) * row_bytes);
    }
#pragma unroll
    for (int r = 0; r < TripleWarps::rows; ++r) {
      const uint4 x = shared_piece(rows + r * row_bytes);
      const unsigned ones = g == r % 8 ? 0x3c003c00u : 0u;  // two halves of 1
#pragma unroll
      for (int c = 0; c < TripleWarps::groups; ++c) {
        const unsigned first[4] = {
            __vmaxu2(low[c].x, x.x), __vmaxu2(high[c].x, x.x),
            __vmaxu2(low[c].y, x.y), __vmaxu2(high[c].y, x.y)};
        add_products(of_[c][r / 8], first, ones, ones);
      }
#pragma unroll
      for (int c = 0; c < TripleWarps::groups; ++c) {
        const unsigned second[4] = {
            __vmaxu2(low[c].z, x.z), __vmaxu2(high[c].z, x.z),
            __vmaxu2(low[c].w, x.w), __vmaxu2(high[c].w, x.w)};
        add_products(of_[c][r / 8], second, ones, ones);
      }
    }
  }
  __device__ void end_part(int part) {
    if (feature_ranges && (part + 1) % TripleWarps::feature_range_parts == 0)
      for_all([](float& sum, float& before) {
        before += sum;
        sum = 0.0f;
      });
  }
  __device__ void finish() {
    if (feature_ranges)
      for_all([](float& sum, float& before) { sum += before; });
  }

 private:
  template <class Each>
  __device__ void for_all(const Each& each) {
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c)
#pragma unroll
      for (int o = 0; o < TripleWarps::octets; ++o)
#pragma unroll
        for (int e = 0; e < 4; ++e) each(of_[c][o][e], before_[c][o][e]);
  }

  int lane_, row0_, column0_;
  float of_[TripleWarps::groups][TripleWarps::octets][4];
  float before_[TripleWarps::groups][TripleWarps::octets][4];
};

}  // namespace cuda
}  // namespace fsknn
