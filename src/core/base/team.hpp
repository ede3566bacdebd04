#pragma once

// Threads that work together: OpenMP's, or C++'s own where the compiler has no
// OpenMP (Apple's has none). Which of them, core/base/team.cpp alone knows.

#include <functional>

namespace fsknn {

/// One thread's place among those that work together; 0 is who called.
struct Seat {
  int number = 0;
  int size = 1;  ///< how many there are, the same for all
};

/// Calls work(seat) at the same time on this thread and on up to
/// num_threads - 1 others, and waits for all. `work` throws nothing. There are
/// fewer of them where OMP_THREAD_LIMIT or the system allows no more, and no
/// others where this thread itself works in a team: the rest of the machine is
/// at work then, too.
void run_team(int num_threads, const std::function<void(Seat)>& work);

/// Threads that this process may use (affinity, control groups).
int num_processors();

}  // namespace fsknn
