#pragma once

// Sums of 16-bit whole numbers, in 32 bits. The larger of two, and the addition
// of both halves of a word, take one instruction each, on units that work in
// parallel.

#include "cuda/triples/triple_tiles.cuh"

namespace fsknn {
namespace cuda {

/// See triple_tiles.cuh: 16 by 16 threads, a thread's rows and columns 16
/// apart; a warp is 4 rows by 8 columns of threads.
class TripleWordSums {
 public:
  static constexpr int down = 16, across = 16;
  static constexpr int rows = TripleBlock::rows / down;
  static constexpr int columns = TripleBlock::columns / across;
  static_assert(down * across == TripleThreads::threads, "all threads");

  __device__ TripleWordSums() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row0_ = warp / 2 * 4 + lane / 8;
    column0_ = warp % 2 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) of_[i][j] = 0;
  }
  __device__ int row(int i) const { return row0_ + down * i; }
  __device__ int column(int j) const { return column0_ + across * j; }
  __device__ float at(int i, int j) const { return __uint2float_rn(of_[i][j]); }

  __device__ void add(unsigned stage) {
    constexpr int row_bytes = TripleThreads::row_bytes;
    // This spreads two staged rows over all banks: of 8 columns each two read
    // another piece.
    const unsigned turn = static_cast<unsigned>(column0_ % 8 / 2);
    const unsigned from_row = stage + row0_ * row_bytes;
    const unsigned from_column =
        stage + (TripleBlock::rows + column0_) * row_bytes;
#pragma unroll
    for (unsigned p = 0; p < row_bytes / 16; ++p) {
      const unsigned piece = (p ^ turn) * 16;
      uint4 b[columns];
#pragma unroll
      for (int j = 0; j < columns; ++j)
        b[j] = shared_piece(from_column + piece + across * j * row_bytes);
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const uint4 a = shared_piece(from_row + piece + down * i * row_bytes);
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          of_[i][j] = with_larger(a.x, b[j].x, of_[i][j]);
          of_[i][j] = with_larger(a.y, b[j].y, of_[i][j]);
          of_[i][j] = with_larger(a.z, b[j].z, of_[i][j]);
          of_[i][j] = with_larger(a.w, b[j].w, of_[i][j]);
        }
      }
    }
  }
  __device__ void end_part(int) {}
  __device__ void finish() {}

 private:
  __device__ static unsigned with_larger(unsigned a, unsigned b, unsigned sum) {
    return __dp2a_lo(__vmaxu2(a, b), 0x0101u, sum);
  }

  int row0_, column0_;
  unsigned of_[rows][columns];
};

}  // namespace cuda
}  // namespace fsknn
