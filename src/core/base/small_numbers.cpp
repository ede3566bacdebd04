#include "core/base/small_numbers.hpp"

#include <algorithm>
#include <atomic>

#include "core/base/pieces.hpp"

namespace fsknn {

std::int32_t largest_whole(const double* x, std::int64_t size,
                           std::int32_t most, int num_threads) {
  constexpr std::int64_t block = 16384;
  std::atomic<bool> whole{true};
  double largest = 0.0;
  struct Worker {
    double largest = 0.0;
  };
  run_pieces(
      (size + block - 1) / block,
      useful_threads(num_threads, static_cast<double>(size)), {},
      [] { return Worker(); },
      [&](Worker& worker, std::int64_t piece) {
        // Other data are mostly detected in the first block.
        if (!whole.load(std::memory_order_relaxed)) return;
        const std::int64_t end = std::min(size, (piece + 1) * block);
        double above = worker.largest;
        bool others = false;
        for (std::int64_t i = piece * block; i < end; ++i) {
          // The conversion is defined only in this range; NaN is not near.
          const bool is_near = x[i] >= 0.0 && x[i] <= most;
          const double y = is_near ? x[i] : 0.5;
          others |= static_cast<double>(static_cast<std::int32_t>(y)) != y;
          above = y > above ? y : above;
        }
        worker.largest = above;
        if (others) whole.store(false, std::memory_order_relaxed);
      },
      [&](Worker& worker) { largest = std::max(largest, worker.largest); });
  return whole ? static_cast<std::int32_t>(largest) : -1;
}

}  // namespace fsknn
