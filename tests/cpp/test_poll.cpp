// Which threads notice Ctrl-C, and which long steps must.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "core/base/sorting.hpp"
#include "core/contract/row_scratch.hpp"
#include "core/rows/split_mix.hpp"

using namespace fsknn;

namespace {

/// Interrupts after a number of polls.
class Patience final : public Progress {
 public:
  explicit Patience(int times) : left_(times) {}
  bool report(double) override { return left_-- > 0; }

 private:
  int left_;
};

class Counter final : public Listener {
 public:
  void listen() override { ++heard; }
  int heard = 0;
};

void work_for(double seconds) {
  const Clock::time_point start = Clock::now();
  while (seconds_since(start) < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    poll();
  }
}

}  // namespace

TEST_CASE("a piece that polls need not end before it is stopped") {
  for (const int threads : {1, 2}) {
    Patience user(1);
    const Clock::time_point start = Clock::now();
    CHECK_THROWS_AS(
        run_pieces(threads, threads, {&user, 0.0, 1.0},
                   [] { return [](std::int64_t) { work_for(20.0); }; }),
        Interrupted);
    CHECK(seconds_since(start) < 5.0);
  }
}

TEST_CASE("the first thread listens while others finish their last pieces") {
  Patience user(1);
  const std::thread::id caller = std::this_thread::get_id();
  const Clock::time_point start = Clock::now();
  std::atomic<bool> other_works{false};
  CHECK_THROWS_AS(run_pieces(2, 2, {&user, 0.0, 1.0},
                             [&] {
                               return [&](std::int64_t) {
                                 if (std::this_thread::get_id() == caller) {
                                   while (!other_works)
                                     std::this_thread::yield();
                                   return;
                                 }
                                 other_works = true;
                                 work_for(20.0);
                               };
                             }),
                  Interrupted);
  CHECK(seconds_since(start) < 5.0);
}

TEST_CASE("who listened before is asked where there is no progress") {
  Counter counter;
  {
    const Listening listening(&counter);
    run_pieces(4, 1, {}, [] { return [](std::int64_t) { poll(); }; });
    const int inside = counter.heard;
    CHECK(inside > 0);
    poll();
    CHECK(counter.heard == inside + 1);
  }
  const int heard = counter.heard;
  poll();
  CHECK(counter.heard == heard);
}

TEST_CASE("costs add up to a poll") {
  Counter counter;
  const Listening listening(&counter);
  for (int i = 0; i < 1000; ++i) poll_after(1e6);
  CHECK(counter.heard >= 49);
  CHECK(counter.heard <= 51);
}

TEST_CASE("long vectors are sorted as short ones are, and heard of") {
  SplitMix random(7);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{1} << 17,
        (std::size_t{1} << 17) + 1, std::size_t{700000}}) {
    std::vector<int> values(size), spare;
    for (int& value : values) value = static_cast<int>(random.below(1000000));
    std::vector<int> expected = values;
    std::sort(expected.begin(), expected.end());
    Counter counter;
    const Listening listening(&counter);
    sort_in_runs(values, spare, [](int a, int b) { return a < b; });
    CHECK(values == expected);
    if (size == 700000) CHECK(counter.heard >= 3);
  }
}

TEST_CASE("ranks of millions of values, many of them equal") {
  SplitMix random(3);
  const std::int64_t d = 400000;
  std::vector<double> x(static_cast<std::size_t>(d));
  std::vector<double> count(1000, 0.0);
  for (double& value : x) {
    value = static_cast<double>(random.below(1000));
    ++count[static_cast<std::size_t>(value)];
  }
  std::vector<double> rank(1000);
  double below = 0.0;
  for (std::size_t v = 0; v < 1000; ++v) {
    rank[v] = below + 0.5 * (count[v] + 1.0);
    below += count[v];
  }
  std::vector<double> ranked = x;
  AverageRanks()(ranked.data(), d);
  bool same = true;
  for (std::size_t i = 0; i < x.size(); ++i)
    same &= ranked[i] == rank[static_cast<std::size_t>(x[i])];
  CHECK(same);
}
