// The plain C++ part of pruning blocks by boxes on a GPU: the nodes of the
// tree, when a plan has one, and what gaps must exceed.

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("the parts of a tree compare each pair from each side's part") {
  // As TreeSchedule lists them: a block of a part meets the later blocks of a
  // node, and those of the node that are before the part.
  for (const std::int64_t blocks : {5, 17, 64, 101}) {
    const TreeLevels levels(blocks);
    for (const std::int64_t parts : {1, 2, 3, 5}) {
      CAPTURE(blocks);
      CAPTURE(parts);
      const FilterBlocks all(blocks * kFilterBlock);
      REQUIRE(all.count == (blocks | 1));
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int32_t first =
            static_cast<std::int32_t>(blocks * part / parts);
        const std::int32_t end =
            static_cast<std::int32_t>(blocks * (part + 1) / parts);
        std::vector<int> met(static_cast<std::size_t>(blocks * blocks), 0);
        const auto meet = [&](std::int32_t row, std::int32_t column) {
          ++met[static_cast<std::size_t>(row * blocks + column)];
        };
        for (int inner = levels.count() - 1; inner > 0;) {
          const int level = std::max(0, inner - 2);
          const std::vector<std::int32_t> starts = levels.starts(level),
                                          ends = levels.ends(level),
                                          inner_starts = levels.starts(inner),
                                          inner_ends = levels.ends(inner);
          for (std::int32_t row = first; row < end; ++row) {
            const std::size_t at = static_cast<std::size_t>(row);
            for (std::int32_t c = inner_ends[at]; c < ends[at]; ++c)
              meet(row, c);
            for (std::int32_t c = std::min(starts[at], first);
                 c < std::min(inner_starts[at], first); ++c)
              meet(row, c);
          }
          inner = level;
        }
        for (std::int32_t row = first; row < end; ++row)
          for (std::int32_t c = 0; c < blocks; ++c) {
            const bool own = c >= first && c < end;
            CHECK(met[static_cast<std::size_t>(row * blocks + c)] ==
                  (own ? c > row : 1));
          }
      }
    }
  }
}

TEST_CASE("a tree in parts needs less memory, and comes before none") {
  PlanInput in;
  in.num_points = in.num_given = 20000000;
  in.num_features = 50;
  in.k = 15;
  in.filter = FilterKind::product;
  in.squares = true;
  const auto plan_in = [&](double gib, int devices) {
    GpuFacts gpus;
    gpus.capability = gpus.most_capability = 90;
    gpus.shared_bytes = 232448;
    gpus.bytes_limit = gib * 0x1p30;
    in.num_workers = devices;
    return plan_cuda(in, gpus);
  };
  double before = HUGE_VAL;
  for (const double gib : {1000.0, 80.0, 50.0, 30.0}) {
    CAPTURE(gib);
    const CudaPlan plan = plan_in(gib, 1);
    CHECK(plan.shape.tree == TreeUse::if_it_pays);
    CHECK(plan.bytes_peak <= gib * 0x1p30);
    CHECK(plan.bytes_peak < before);
    CHECK(plan.shape.needs_tree == (plan.shape.parts > 1));
    before = plan.bytes_peak;
  }
  CHECK(plan_in(30.0, 1).shape.parts > plan_in(80.0, 1).shape.parts);
  // Each device has lists of its own points only.
  CHECK(plan_in(50.0, 2).shape.parts < plan_in(50.0, 1).shape.parts);
  // Without a tree, such points come in panels.
  in.order = AskedOrder::scattered;
  const CudaPlan without = plan_in(30.0, 1);
  CHECK(without.shape.tree == TreeUse::never);
  CHECK(without.streamed);
}

TEST_CASE("a plan has a tree where boxes may prune") {
  PlanInput in;
  in.num_points = 300000;
  in.num_features = 50;
  in.k = 15;
  in.squares = true;
  FilterShape shape;
  shape.rows.form = NumberForm::half;
  CHECK(tree_use(in, shape) == TreeUse::if_it_pays);
  const auto changed = [&](auto change) {
    PlanInput other = in;
    change(other);
    return tree_use(other, shape);
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
  CHECK(tree_use(in, shape) == TreeUse::never);
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
