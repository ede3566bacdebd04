// The host threads that drive devices, with work that needs no device.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "cuda/device/workers.hpp"

using fsknn::Interrupted;
using fsknn::Progress;
using fsknn::cuda::Workers;

namespace {

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

/// Interrupts at the first poll, and remembers the thread and the progress.
class Impatient final : public Progress {
 public:
  bool report(double done) override {
    asked = true;
    asked_on_own_thread = std::this_thread::get_id() == own_;
    told = done;
    return false;
  }
  bool asked = false, asked_on_own_thread = false;
  double told = -1.0;

 private:
  std::thread::id own_ = std::this_thread::get_id();
};

}  // namespace

TEST_CASE("every worker's work is done once") {
  for (const int count : {1, 2, 5}) {
    Workers workers(nullptr, 1);
    std::atomic<int> sum{0};
    workers.run(count, [&](int w) { sum += 1 << w; });
    CHECK(sum == (1 << count) - 1);
  }
}

TEST_CASE("the user's stop reaches all workers, by the calling thread") {
  for (const int count : {1, 3}) {
    Impatient user;
    Workers workers(&user, 1000 * count);
    std::atomic<int> pieces{0};
    CHECK_THROWS_AS(workers.run(count,
                                [&](int) {
                                  for (int p = 0; p < 1000; ++p) {
                                    sleep_ms(2);
                                    ++pieces;
                                    if (!workers.go_on()) return;
                                  }
                                }),
                    Interrupted);
    CHECK(user.asked_on_own_thread);
    CHECK(user.told > 0.0);
    CHECK(user.told < 1.0);
    CHECK(pieces < 1000);
  }
}

TEST_CASE("the calling thread listens while others still work") {
  Impatient user;
  Workers workers(&user, 400);
  CHECK_THROWS_AS(workers.run(2,
                              [&](int w) {
                                if (w == 0) return;
                                for (int p = 0; p < 400; ++p) {
                                  sleep_ms(2);
                                  if (!workers.go_on()) return;
                                }
                              }),
                  Interrupted);
  CHECK(user.asked);
}

TEST_CASE("who asked for the filter alone hears of it once, and all stop") {
  class Curious final : public Progress {
   public:
    bool report(double) override { return true; }
    bool chosen(const fsknn::ChosenFilter& filter) override {
      ++times;
      bits = bits_of(filter.numbers);
      return false;
    }
    int times = 0, bits = -1;
  };
  for (const int count : {1, 3}) {
    Curious user;
    Workers workers(&user, 1000 * count);
    std::atomic<int> pieces{0};
    CHECK_THROWS_AS(
        workers.run(count,
                    [&](int) {
                      workers.tell_chosen(fsknn::FilterNumbers::int8);
                      for (int p = 0; p < 1000; ++p) {
                        sleep_ms(1);
                        ++pieces;
                        if (!workers.go_on()) return;
                      }
                    }),
        Interrupted);
    CHECK(user.times == 1);
    CHECK(user.bits == 8);
    CHECK(pieces < 1000 * count);
  }
  Impatient other;
  Workers workers(&other, 1);
  workers.run(2, [&](int) { workers.tell_chosen(fsknn::FilterNumbers::int8); });
  CHECK(!other.asked);
}

TEST_CASE(
    "pieces within a worker's work leave the user to the calling thread") {
  class Counter final : public Progress {
   public:
    bool report(double) override {
      if (std::this_thread::get_id() != own_) ++asked_elsewhere;
      return true;
    }
    std::atomic<int> asked_elsewhere{0};

   private:
    std::thread::id own_ = std::this_thread::get_id();
  };
  Counter user;
  Workers workers(&user, 1);
  if (Workers::at_once(2) < 2) return;
  std::atomic<bool> done{false};
  workers.run(2, [&](int w) {
    if (w == 1) {
      fsknn::run_pieces(3, 2, {}, [] {
        return [](std::int64_t) {
          sleep_ms(60);
          fsknn::poll();
        };
      });
      done = true;
    }
    while (!done) sleep_ms(1);
  });
  CHECK(user.asked_elsewhere == 0);
}

TEST_CASE("a worker's failure stops the others and is thrown") {
  Workers workers(nullptr, 3000);
  std::atomic<int> pieces{0};
  CHECK_THROWS_AS(workers.run(3,
                              [&](int w) {
                                if (w == 1) throw fsknn::RangeFailure();
                                for (int p = 0; p < 1000; ++p) {
                                  sleep_ms(1);
                                  ++pieces;
                                  if (!workers.go_on()) return;
                                }
                              }),
                  fsknn::RangeFailure);
  CHECK(pieces < 2000);
}

TEST_CASE("a lost device is told of, whoever failed before") {
  const auto fail = [](int w) {
    // The sleep lets all workers begin: a worker does not begin after a
    // failure.
    sleep_ms(w == 1 ? 150 : 100);
    if (w == 0) throw fsknn::CudaFailure("out of memory", 0);
    if (w == 2) throw fsknn::RangeFailure();
    fsknn::CudaFailure lost("an illegal memory access was encountered", 1);
    lost.sticky = true;
    throw lost;
  };
  if (Workers::at_once(3) < 3) return;
  Workers workers(nullptr, 1);
  try {
    workers.run(3, fail);
    FAIL("nothing was thrown");
  } catch (const fsknn::CudaFailure& e) {
    CHECK(e.device == 1);
    CHECK(e.sticky);
  }
}

TEST_CASE("workers that meet wait for each other, and for none that failed") {
  const int count = Workers::at_once(3);
  {
    Workers workers(nullptr, 1);
    std::atomic<int> arrived{0};
    std::atomic<bool> early{false};
    workers.run(count, [&](int w) {
      for (int round = 1; round <= 50; ++round) {
        if (w == round % count) sleep_ms(1);
        ++arrived;
        if (!workers.meet()) return;
        if (arrived < round * count) early = true;
        if (!workers.meet()) return;
      }
    });
    CHECK(arrived == 50 * count);
    CHECK_FALSE(early);
  }
  Workers workers(nullptr, 1);
  std::atomic<int> went_on{0};
  CHECK_THROWS_AS(workers.run(count,
                              [&](int w) {
                                if (!workers.meet()) return;
                                if (w == 0) throw fsknn::RangeFailure();
                                if (workers.meet()) ++went_on;
                              }),
                  fsknn::RangeFailure);
  CHECK(went_on == 0);
}

TEST_CASE("the user's stop ends a meeting") {
  Impatient user;
  Workers workers(&user, 1);
  const int count = Workers::at_once(2);
  if (count < 2) return;
  CHECK_THROWS_AS(workers.run(count,
                              [&](int w) {
                                if (w == 1) sleep_ms(400);
                                workers.meet();
                              }),
                  Interrupted);
}
