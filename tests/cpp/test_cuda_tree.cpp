// The plain C++ part of pruning blocks by boxes on a GPU: the nodes of the
// tree, when a plan has one, and what gaps must exceed.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/plan/plan.hpp"
#include "cuda/plan/tile_tree.hpp"
#include "cuda/plan/tree_reach.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

TEST_CASE("the rounds of a tree compare each pair of blocks once") {
  for (const std::int64_t blocks : {1, 3, 5, 17, 64, 101, 1025}) {
    CAPTURE(blocks);
    const TreeLevels levels(blocks);
    const std::vector<std::int32_t>& last = levels.level(levels.count() - 1);
    REQUIRE(last.size() == static_cast<std::size_t>(blocks + 1));
    CHECK(levels.level(0).size() == 2);
    std::vector<std::int32_t> begins = levels.ends(levels.count() - 1);
    for (int level = levels.count() - 2; level >= 0; --level) {
      const std::vector<std::int32_t> ends = levels.ends(level);
      for (std::size_t b = 0; b < ends.size(); ++b) {
        CHECK(begins[b] <= ends[b]);
        // All blocks of a node have the same end.
        CHECK(ends[static_cast<std::size_t>(ends[b] - 1)] == ends[b]);
      }
      begins = ends;
    }
    for (const std::int32_t end : begins) CHECK(end == blocks);
  }
}

TEST_CASE("a plan has a tree where boxes may prune") {
  PlanInput in;
  in.num_points = 300000;
  in.num_features = 50;
  in.k = 15;
  in.squares = true;
  FilterShape shape;
  shape.rows.form = NumberForm::half;
  CHECK(tree_use(in, shape, 1) == TreeUse::if_it_pays);
  CHECK(tree_use(in, shape, 2) == TreeUse::never);
  const auto changed = [&](auto change) {
    PlanInput other = in;
    change(other);
    return tree_use(other, shape, 1);
  };
  using In = PlanInput;
  CHECK(changed([](In& i) { i.squares = false; }) == TreeUse::never);
  CHECK(changed([](In& i) { i.num_queries = 1; }) == TreeUse::never);
  CHECK(changed([](In& i) { i.num_features = 129; }) == TreeUse::never);
  CHECK(changed([](In& i) { i.num_points = 200000; }) == TreeUse::never);
  CHECK(changed([](In& i) { i.group_sizes = {1, 2}; }) == TreeUse::never);
  CHECK(changed([](In& i) { i.order = AskedOrder::scattered; }) ==
        TreeUse::never);
  CHECK(changed([](In& i) {
          i.order = AskedOrder::tree;
          i.num_points = 5000;
        }) == TreeUse::always);
  shape.fill_blocks = 3;
  CHECK(tree_use(in, shape, 1) == TreeUse::never);
}

TEST_CASE("gaps within reach are those of possible neighbours") {
  const PowerOfTwo none = {1.0, 1.0};
  for (const double scale : {0x1p-300, 0x1p-20, 1.0, 0x1p20, 0x1p300}) {
    const ReachRule rule = ReachRule::of(56, none, scale);
    for (const double units : {0x1p-10, 1.0, 257.0, 0x1p14}) {
      CAPTURE(scale);
      CAPTURE(units);
      const double length = units / scale;
      const float threshold = static_cast<float>(-units * units / 2);
      const double square = length * length;
      const float reach = reach_of(rule, threshold);
      // A pair at this distance is within reach, hardly one farther away.
      CHECK(static_cast<double>(reach) >= square);
      if (square < 1e30 && square > 1e-30)
        CHECK(static_cast<double>(reach) < square * (1.0 + 0x1p-20));
      CHECK(reach_of(rule, std::nextafterf(threshold, -HUGE_VALF)) >= reach);
    }
    CHECK(reach_of(rule, -HUGE_VALF) == HUGE_VALF);
    // Rows whose k-th distance is 0 reach rows at 0.
    CHECK(reach_of(rule, 0.0f) > 0.0f);
    CHECK(reach_of(rule, 1.0f) > 0.0f);
    CHECK(reach_of(rule, HUGE_VALF) > 0.0f);
  }
  // Removing the matrix's power of two may round a distance to 0.
  const ReachRule tiny = ReachRule::of(56, {0x1p-500, 0x1p-540}, 1.0);
  CHECK(reach_of(tiny, 0.0f) > 0x1p-70f);
}
