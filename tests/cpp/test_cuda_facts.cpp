// The facts in a plan about devices of different kinds.

#include <doctest/doctest.h>

#include "cuda/plan/gpu_facts.hpp"

using fsknn::cuda::Device;
using fsknn::cuda::facts_of;
using fsknn::cuda::GpuFacts;

TEST_CASE("of different devices a plan knows what all can do") {
  Device large, small;
  large.bytes_free = 8e10;
  large.major = 9;
  large.shared_bytes = 232448;
  small.bytes_free = 2e9;
  small.major = 7;
  small.minor = 5;
  small.shared_bytes = 65536;
  small.hopper_code = false;
  for (const auto& both :
       {std::vector<Device>{large, small}, std::vector<Device>{small, large}}) {
    const GpuFacts facts = facts_of(both, 1e9);
    CHECK(facts.bytes_free == 2e9);
    CHECK(facts.capability == 75);
    CHECK(facts.shared_bytes == 65536);
    CHECK(facts.bytes_limit == 1e9);
    CHECK_FALSE(facts.hopper_code);
  }
  CHECK(facts_of({large}, 0).capability == 90);
  CHECK(facts_of({large}, 0).shared_bytes == 232448);
  CHECK(facts_of({large}, 0).bytes_free == 8e10);
  CHECK(facts_of({large}, 0).hopper_code);
}
