// Threads that work together, of either implementation.

#include <doctest/doctest.h>

#ifdef __linux__
#include <sched.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/base/team.hpp"

using namespace fsknn;

namespace {

/// The number of threads that OMP_THREAD_LIMIT allows tests.
int at_most(int count) {
  const char* const limit = std::getenv("OMP_THREAD_LIMIT");
  return limit == nullptr || std::atoi(limit) > count ? count
                                                      : std::atoi(limit);
}

}  // namespace

TEST_CASE("a team has the seats that were asked for, or OMP_THREAD_LIMIT") {
  for (const int count : {1, 2, 3, 17}) {
    const int expected = at_most(count);
    std::vector<std::atomic<int>> taken(static_cast<std::size_t>(count));
    std::atomic<int> other_sizes{0}, strangers{0};
    const std::thread::id caller = std::this_thread::get_id();
    run_team(count, [&](Seat seat) {
      if (seat.size != expected) ++other_sizes;
      if ((seat.number == 0) != (std::this_thread::get_id() == caller))
        ++strangers;
      ++taken[static_cast<std::size_t>(seat.number)];
    });
    CHECK(other_sizes == 0);
    CHECK(strangers == 0);
    for (int number = 0; number < count; ++number)
      CHECK(taken[static_cast<std::size_t>(number)] ==
            (number < expected ? 1 : 0));
  }
}

TEST_CASE("all of a team work at the same time") {
  const Clock::time_point start = Clock::now();
  std::atomic<int> there{0};
  run_team(3, [&](Seat seat) {
    ++there;
    while (there < seat.size && seconds_since(start) < 20.0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  CHECK(there == at_most(3));
  CHECK(seconds_since(start) < 20.0);
}

TEST_CASE("a team within a team is its caller alone, and not after it") {
  std::atomic<int> inner{0}, outer{0};
  run_team(2, [&](Seat) {
    ++outer;
    run_team(2, [&](Seat seat) { inner += seat.size; });
  });
  CHECK(outer == at_most(2));
  if (outer == 2) CHECK(inner == 2);
  std::atomic<int> again{0};
  run_team(2, [&](Seat) { ++again; });
  CHECK(again == at_most(2));
}

TEST_CASE("the processors are those that the process may use") {
  CHECK(num_processors() >= 1);
#ifdef __linux__
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CHECK(num_processors() == CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(num_processors() == 1);
  CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
#endif
}
