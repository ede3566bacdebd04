#pragma once

// Work in pieces, for all threads of one process.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "core/errors.hpp"
#include "core/progress.hpp"

namespace fsknn {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Threads worth starting for that many operations: waking and joining a
/// thread costs more than a few hundred microseconds of work on a busy machine.
inline int useful_threads(int asked, double operations) {
  constexpr double operations_per_thread = 1e6;
  const double most = 1.0 + operations / operations_per_thread;
  return asked < most ? asked : static_cast<int>(most);
}

/// `asked`, but 1 in a forked child whose parent has used threads: the pool of
/// threads does not come along, and OpenMP would wait for it for ever.
inline int threads_after_fork(int asked) {
#if defined(__unix__) || defined(__APPLE__)
  static std::atomic<long> owner{0};
  if (asked < 2) return asked;
  long none = 0;
  const long me = static_cast<long>(getpid());
  if (!owner.compare_exchange_strong(none, me) && none != me) return 1;
#endif
  return asked;
}

/// A stretch of the whole work, as shares of 1: what its pieces report.
struct Stretch {
  Progress* progress = nullptr;  ///< may be null
  double from = 0.0, to = 0.0;
};

/// Each thread makes a worker and calls it with the numbers of pieces, in
/// order, until none is left. Between two of them the first thread tells the
/// progress and asks whether to go on. Joins all threads, then rethrows what
/// one of them threw.
template <class MakeWorker>
void run_pieces(std::int64_t num_pieces, int num_threads, Stretch stretch,
                MakeWorker make_worker) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  num_threads = threads_after_fork(static_cast<int>(std::max<std::int64_t>(
      1, std::min<std::int64_t>(num_threads, num_pieces))));
#pragma omp parallel num_threads(num_threads)
  {
#ifdef _OPENMP
    const bool tells = omp_get_thread_num() == 0 && stretch.progress != nullptr;
#else
    const bool tells = stretch.progress != nullptr;
#endif
    try {
      auto work = make_worker();
      Clock::time_point told = Clock::now();
      while (!stop.load(std::memory_order_relaxed)) {
        const std::int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= num_pieces) break;
        work(piece);
        if (!tells || seconds_since(told) < 0.1) continue;
        told = Clock::now();
        const double share =
            static_cast<double>(piece + 1) / static_cast<double>(num_pieces);
        if (!stretch.progress->report(stretch.from +
                                      (stretch.to - stretch.from) * share))
          throw Interrupted();
      }
    } catch (...) {
#pragma omp critical(fsknn_pieces)
      if (!failure) failure = std::current_exception();
      stop = true;
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fsknn
