#include "core/base/team.hpp"

#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#include <unistd.h>

#include <atomic>
#else
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>
#ifdef __linux__
#include <sched.h>
#endif
#endif

namespace fsknn {
namespace {

using Work = std::function<void(Seat)>;

thread_local bool in_team = false;

void take_seat(Seat seat, const Work& work) {
  in_team = seat.size > 1;
  work(seat);
  in_team = false;
}

#ifdef _OPENMP

/// Whether this is a forked child whose parent has used threads. A fork does
/// not copy the pool of threads, and OpenMP would wait for it for ever.
bool pool_is_lost() {
  static std::atomic<long> owner{0};
  long none = 0;
  const long me = static_cast<long>(getpid());
  return !owner.compare_exchange_strong(none, me) && none != me;
}

void start(int num_threads, const Work& work) {
  if (pool_is_lost()) num_threads = 1;
#pragma omp parallel num_threads(num_threads)
  take_seat({omp_get_thread_num(), omp_get_num_threads()}, work);
}

#else

/// The limit that OpenMP would apply to any request; 0: none.
int thread_limit() {
  const char* const text = std::getenv("OMP_THREAD_LIMIT");
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long limit = std::strtol(text, &end, 10);
  while (*end == ' ') ++end;
  return *end == '\0' && limit > 0 && limit < 1000000000
             ? static_cast<int>(limit)
             : 0;
}

void start(int num_threads, const Work& work) {
  const int limit = thread_limit();
  if (limit > 0) num_threads = std::min(num_threads, limit);
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(num_threads));
  // The size is known once the last thread has started: all wait until then.
  std::mutex door;
  int size = 1;
  {
    const std::lock_guard<std::mutex> closed(door);
    try {
      for (int number = 1; number < num_threads; ++number) {
        others.emplace_back([&, number] {
          { const std::lock_guard<std::mutex> open(door); }
          take_seat({number, size}, work);
        });
        ++size;
      }
    } catch (...) {
      // No more threads can be started: the existing ones do the work.
    }
  }
  take_seat({0, size}, work);
  for (std::thread& other : others) other.join();
}

#endif

}  // namespace

void run_team(int num_threads, const Work& work) {
  if (num_threads < 2 || in_team)
    work({});
  else
    start(num_threads, work);
}

#ifdef _OPENMP

int num_processors() { return std::max(1, omp_get_num_procs()); }

#else

int num_processors() {
#ifdef __linux__
  // This fails, as it may for other reasons, if the machine has more processors
  // than the set has room for.
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0)
    return std::max(1, CPU_COUNT(&usable));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

#endif

}  // namespace fsknn
