// What a plan is told of devices of different kinds.

#include <doctest/doctest.h>

#include "cuda/search/facts.hpp"

using fsknn::cuda::Device;
using fsknn::cuda::facts_of;
using fsknn::cuda::GpuFacts;

TEST_CASE("of different devices a plan knows what all can do") {
  Device large, small;
  large.bytes_free = 8e10;
  large.half_products = true;
  small.bytes_free = 2e9;
  for (const auto& both : {std::vector<Device>{large, small},
                           std::vector<Device>{small, large}}) {
    const GpuFacts facts = facts_of(both, 1e9);
    CHECK(facts.bytes_free == 2e9);
    CHECK(!facts.half_products);
    CHECK(facts.bytes_limit == 1e9);
  }
  CHECK(facts_of({large}, 0).half_products);
  CHECK(facts_of({large}, 0).bytes_free == 8e10);
}
