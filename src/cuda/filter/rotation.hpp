#pragma once

// An orthogonal rotation that spreads a few large features of a row over many,
// so that bytes with one step represent all rows about equally well. It applies
// signs, then sums and differences of pairs of features (the Walsh-Hadamard
// matrix), over overlapping windows, twice. Plain C++, for host and device.
//
// Each stage of a window is (a, b) -> (a + b, a - b), whose matrix is
// orthogonal up to a factor of sqrt(2). A window has a power of 4 features, so
// that the factors together are a power of 2. Products of rows are therefore
// preserved up to rounding. A stage's results are rounded once each, so that a
// row's error is less than 2^-53 of its length a stage, and less than
// rotation_error() of it after num_stages(). Removing a factor may lose less
// than 2^-1074 each time, which the 2^-400 that byte_bound.hpp adds covers.

#include <cstdint>

#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

struct Rotation {
  std::int64_t size = 0;  ///< features, at least 4
  int window = 4, log2_window = 2;

  static constexpr int passes = 2, largest = 4096;

  FSKNN_HD explicit Rotation(std::int64_t features) : size(features) {
    while (4 * window <= size && 4 * window <= largest) {
      window *= 4;
      log2_window += 2;
    }
  }
  FSKNN_HD std::int64_t num_windows() const {
    return (size + window - 1) / window;
  }
  FSKNN_HD std::int64_t num_stages() const {
    return passes * num_windows() * log2_window;
  }
};

FSKNN_HD inline double rotation_error(const Rotation& rotation) {
  return static_cast<double>(rotation.num_stages()) * 0x1p-52;
}

/// Returns a sign for each feature and window, independent of the data. Without
/// signs in between a window would undo the previous one.
FSKNN_HD inline bool turns_over(std::int64_t window, std::int64_t feature) {
  std::uint64_t x = static_cast<std::uint64_t>(feature) +
                    (static_cast<std::uint64_t>(window) << 32) +
                    0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return ((x ^ (x >> 31)) & 1) != 0;
}

/// Rotates a row in place. All threads that share it call this; wait() is their
/// barrier.
template <class Wait>
FSKNN_HD inline void turn(const Rotation& t, double* row, int thread,
                          int num_threads, Wait wait) {
  const double unit = two_to(-t.log2_window / 2);
  for (int pass = 0; pass < Rotation::passes; ++pass) {
    for (std::int64_t w = 0; w < t.num_windows(); ++w) {
      // The last window overlaps the previous one. The second pass wraps
      // around.
      const std::int64_t last = t.size - t.window;
      const std::int64_t first =
          (w * t.window < last ? w * t.window : last) + pass * (t.window / 2);
      const auto at = [&](int i) -> double& {
        const std::int64_t f = first + i;
        return row[f < t.size ? f : f - t.size];
      };
      for (int i = thread; i < t.window; i += num_threads)
        if (turns_over(pass * t.num_windows() + w, i)) at(i) = -at(i);
      wait();
      for (int gap = 1; gap < t.window; gap *= 2) {
        for (int p = thread; p < t.window / 2; p += num_threads) {
          const int i = (p & ~(gap - 1)) * 2 + (p & (gap - 1));
          const double a = at(i), b = at(i + gap);
          at(i) = a + b;
          at(i + gap) = a - b;
        }
        wait();
      }
      for (int i = thread; i < t.window; i += num_threads) at(i) *= unit;
      wait();
    }
  }
}

}  // namespace cuda
}  // namespace fsknn
