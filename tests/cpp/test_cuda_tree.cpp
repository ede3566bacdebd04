// The plain C++ part of pruning blocks by boxes on a GPU: the nodes of the
// tree, when a plan has one, and what gaps must exceed.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "cuda/plan/plan.hpp"
#include "cuda/plan/tile_tree.hpp"
#include "cuda/plan/tree_reach.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

/// Points on a line in the blocks of a tree, and their lists while the rounds
/// of a part are run on the host, as search/tree_schedule.cu runs them.
class LineInParts {
 public:
  /// points: by block. Their numbers are shuffled, so that ties are too.
  LineInParts(std::vector<std::vector<int>> points, std::size_t k)
      : points_(std::move(points)), k_(k) {
    for (const std::vector<int>& block : points_) {
      first_.push_back(num_);
      num_ += block.size();
    }
    for (const std::vector<int>& block : points_)
      for (const int x : block) {
        x_.push_back(x);
        // 7919 is a prime, and no case has as many points.
        numbers_.push_back(numbers_.size() * 7919 % num_);
      }
    first_.push_back(num_);
  }
  std::int64_t num_blocks() const {
    return static_cast<std::int64_t>(points_.size());
  }
  std::size_t num_pruned() const { return num_pruned_; }

  /// Searches for the neighbours of a part's points. loses: the first list
  /// overflows at its first cut. Returns the number of other lists that are
  /// wrong.
  int search(const TreeLevels& levels, std::int32_t first, std::int32_t end,
             bool loses) {
    const std::size_t lost = loses ? at(first) : num_;
    lists_.assign(num_, {});
    thresholds_.assign(num_, HUGE_VALF);
    for (std::size_t i = at(first); i < at(end); ++i)
      thresholds_[i] = -HUGE_VALF;
    for (std::int32_t b = first; b < end; ++b) compare(b, b);
    cut(lost);
    for (const TreeRound& round : tree_rounds(levels, first)) {
      const TreeRanges ranges(levels, round, first);
      std::vector<float> reach;
      for (std::int32_t b = 0; b < num_blocks(); ++b)
        reach.push_back(reach_of_block(b));
      // Rows are listed a few at a time, as where memory is short.
      for (std::int32_t row0 = first; row0 < end; row0 += 3) {
        const std::int32_t row1 = std::min(end, row0 + 3);
        std::set<std::pair<std::int32_t, std::int32_t>> marked;
        const auto is_reached = [&](std::int32_t own, std::int32_t other) {
          return !(gap(own, other) > reach[static_cast<std::size_t>(own)]);
        };
        std::size_t all = 0;
        for (std::int32_t r = row0; r < row1; ++r)
          for (std::int32_t c = of(ranges.columns_first, r);
               c < of(ranges.columns_end, r); ++c, ++all)
            if (is_reached(r, c)) marked.insert({r, c});
        for (std::int32_t c = row0; !round.before && c < end; ++c)
          for (std::int32_t r = std::max(of(ranges.rows_first, c), row0);
               r < std::min(of(ranges.rows_end, c), row1); ++r)
            if (is_reached(c, r)) marked.insert({r, c});
        num_pruned_ += all - marked.size();
        for (const auto& pair : marked) compare(pair.first, pair.second);
      }
      cut(num_);
    }
    int wrong = 0;
    for (std::size_t i = 0; i < num_; ++i) {
      const bool own = i >= at(first) && i < at(end);
      if (i != lost) wrong += lists_[i] != (own ? nearest(i) : List());
    }
    return wrong;
  }

 private:
  using List = std::vector<std::pair<int, std::size_t>>;  // distance, number

  std::size_t at(std::int32_t block) const {
    return first_[static_cast<std::size_t>(block)];
  }
  static std::int32_t of(const std::vector<std::int32_t>& blocks,
                         std::int32_t block) {
    return blocks[static_cast<std::size_t>(block)];
  }
  int distance(std::size_t i, std::size_t j) const {
    return std::abs(x_[i] - x_[j]);
  }
  float gap(std::int32_t a, std::int32_t b) const {
    const auto sides = [&](std::int32_t block) {
      const auto begin = x_.begin() + static_cast<std::ptrdiff_t>(at(block));
      const auto stop = x_.begin() + static_cast<std::ptrdiff_t>(at(block + 1));
      return std::minmax_element(begin, stop);
    };
    const auto of_a = sides(a), of_b = sides(b);
    const int apart =
        std::max({0, *of_b.first - *of_a.second, *of_a.first - *of_b.second});
    return static_cast<float>(apart * apart);
  }
  float reach_of_block(std::int32_t block) const {
    float most = -HUGE_VALF;
    for (std::size_t i = at(block); i < at(block + 1); ++i)
      if (thresholds_[i] < HUGE_VALF)
        most = std::max(
            most, reach_of(ReachRule::of(8, {1.0, 1.0}, 1.0), thresholds_[i]));
    return most;
  }
  void compare(std::int32_t row, std::int32_t column) {
    for (std::size_t i = at(row); i < at(row + 1); ++i)
      for (std::size_t j = row == column ? i + 1 : at(column);
           j < at(column + 1); ++j) {
        const int d = distance(i, j);
        const float similarity = -0.5f * static_cast<float>(d * d);
        if (similarity >= thresholds_[i]) lists_[i].push_back({d, numbers_[j]});
        if (similarity >= thresholds_[j]) lists_[j].push_back({d, numbers_[i]});
      }
  }
  void cut(std::size_t lost) {
    for (std::size_t i = 0; i < num_; ++i) {
      if (i == lost && !lists_[i].empty()) thresholds_[i] = HUGE_VALF;
      std::sort(lists_[i].begin(), lists_[i].end());
      if (lists_[i].size() < k_ || thresholds_[i] == HUGE_VALF) continue;
      lists_[i].resize(k_);
      const float kth = static_cast<float>(lists_[i].back().first);
      thresholds_[i] = -0.5f * kth * kth;
    }
  }
  List nearest(std::size_t i) const {
    List all;
    for (std::size_t j = 0; j < num_; ++j)
      if (j != i) all.push_back({distance(i, j), numbers_[j]});
    std::sort(all.begin(), all.end());
    all.resize(std::min(k_, all.size()));
    return all;
  }

  const std::vector<std::vector<int>> points_;
  const std::size_t k_;
  std::size_t num_ = 0, num_pruned_ = 0;
  std::vector<std::size_t> first_, numbers_;
  std::vector<int> x_;
  std::vector<List> lists_;
  std::vector<float> thresholds_;
};

}  // namespace

TEST_CASE("a part of a tree finds its points' neighbours, and no others'") {
  for (const std::int32_t blocks : {1, 3, 5, 17, 33}) {
    const TreeLevels levels(blocks);
    for (const int apart : {0, 1, 5}) {
      // Blocks of 2 and 3 points, of which neighbouring ones touch. Later ones
      // are longer, so that many are reached and do not reach. All points are
      // equal if `apart` is 0.
      std::vector<std::vector<int>> points;
      std::size_t num_points = 0;
      for (int b = 0; b < blocks; ++b) {
        points.push_back({apart * b * b, apart * (b + 1) * (b + 1)});
        if (b % 3 == 0) points.back().push_back(apart * b * (b + 1));
        num_points += points.back().size();
      }
      for (const std::size_t k :
           {std::size_t{1}, std::size_t{4}, num_points - 2, num_points - 1}) {
        LineInParts line(points, std::max<std::size_t>(1, k));
        for (const std::int32_t parts : {1, 2, 3, 5, 33}) {
          if (parts > blocks) continue;
          CAPTURE(blocks);
          CAPTURE(apart);
          CAPTURE(k);
          CAPTURE(parts);
          for (std::int32_t part = 0; part < parts; ++part) {
            const std::int32_t first = blocks * part / parts,
                               end = blocks * (part + 1) / parts;
            for (const bool loses : {false, true})
              CHECK(line.search(levels, first, end, loses) == 0);
          }
        }
        if (blocks == 33 && apart > 0 && k == 1) CHECK(line.num_pruned() > 0);
      }
    }
  }
}

TEST_CASE("the parts of a tree compare each pair from each side's part") {
  for (const std::int64_t blocks : {1, 3, 5, 17, 65, 101, 1025}) {
    const TreeLevels levels(blocks);
    REQUIRE(levels.level(levels.count() - 1).size() ==
            static_cast<std::size_t>(blocks + 1));
    for (const std::int64_t parts : {1, 2, 3, 5, 64}) {
      if (parts > blocks) continue;
      CAPTURE(blocks);
      CAPTURE(parts);
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int32_t first =
            static_cast<std::int32_t>(blocks * part / parts);
        const std::int32_t end =
            static_cast<std::int32_t>(blocks * (part + 1) / parts);
        std::vector<int> met(static_cast<std::size_t>(blocks * blocks), 0);
        int wrong = 0;
        for (const TreeRound& round : tree_rounds(levels, first)) {
          const TreeRanges ranges(levels, round, first);
          std::vector<int> as_rows(static_cast<std::size_t>(blocks), 0);
          for (std::int32_t row = first; row < end; ++row) {
            const std::size_t at = static_cast<std::size_t>(row);
            for (std::int32_t c = ranges.columns_first[at];
                 c < ranges.columns_end[at]; ++c) {
              ++met[static_cast<std::size_t>(row * blocks + c)];
              if (c < end) ++as_rows[static_cast<std::size_t>(c)];
              wrong += round.before ? c >= first : c <= row;
            }
          }
          if (round.before) continue;
          // The same pairs from the columns' side.
          for (std::int32_t c = first; c < end; ++c) {
            const std::size_t at = static_cast<std::size_t>(c);
            const std::int32_t from = std::max(ranges.rows_first[at], first);
            wrong += as_rows[at] != std::max(0, ranges.rows_end[at] - from);
          }
        }
        for (std::int32_t row = first; row < end; ++row)
          for (std::int32_t c = 0; c < blocks; ++c) {
            const bool own = c >= first && c < end;
            wrong += met[static_cast<std::size_t>(row * blocks + c)] !=
                     (own ? c > row : 1);
          }
        CHECK(wrong == 0);
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

TEST_CASE("no part of a tree is without a block") {
  PlanInput in;
  in.num_features = 50;
  in.k = 15;
  in.filter = FilterKind::product;
  in.squares = true;
  in.order = AskedOrder::tree;
  int in_parts = 0;
  for (const std::int64_t n : {1500, 5000, 40000})
    for (const int devices : {1, 3, 8})
      for (double bytes = 0x1p23; bytes < 0x1p28; bytes *= 1.01) {
        GpuFacts gpus;
        gpus.capability = gpus.most_capability = 90;
        gpus.shared_bytes = 232448;
        gpus.bytes_limit = bytes;
        in.num_points = in.num_given = n;
        in.num_workers = devices;
        // So that several devices help.
        in.chunk_size = 128;
        const CudaPlan plan = plan_cuda(in, gpus);
        if (plan.shape.tree == TreeUse::never) continue;
        in_parts += plan.shape.parts > 1;
        const std::int64_t parts = plan.num_workers * plan.shape.parts;
        const FilterBlocks blocks(n);
        if (parts <= blocks.count && plan.shape.parts <= kMostTreeParts &&
            plan.bytes_peak <= bytes)
          continue;
        CAPTURE(n);
        CAPTURE(devices);
        CAPTURE(bytes);
        FAIL_CHECK("a part has no block, or the plan does not fit");
      }
  CHECK(in_parts > 100);
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
