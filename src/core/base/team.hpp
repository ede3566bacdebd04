#pragma once

// Threads that work together: OpenMP's, or C++'s own if the compiler has no
// OpenMP (as Apple's). Only core/base/team.cpp knows which.

#include <functional>

namespace fsknn {

/// The number of a thread in its team; 0 is the caller.
struct Seat {
  int number = 0;
  int size = 1;  ///< the number of threads, the same for all
};

/// Calls work(seat) concurrently on this thread and on up to num_threads - 1
/// others, and waits for all. `work` must not throw. There are fewer threads if
/// OMP_THREAD_LIMIT or the system allows no more. There are no others if this
/// thread itself works in a team, because the other processors are then busy,
/// too.
void run_team(int num_threads, const std::function<void(Seat)>& work);

/// Threads that this process may use (affinity, control groups).
int num_processors();

}  // namespace fsknn
