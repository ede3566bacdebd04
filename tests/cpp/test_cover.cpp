// The cover of pairs on small tables, against an enumeration of all sets of
// features.

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>
#include "core/cover/cover.hpp"
#include "core/rows/split_mix.hpp"

using namespace fsknn;

namespace {

struct Table {
  int num_features, num_samples;
  std::vector<int> levels;  ///< column-major, features in rows
  std::vector<int> classes;

  int at(int feature, int sample) const {
    return levels[static_cast<std::size_t>(sample * num_features + feature)];
  }
  CoverAnswer search(int alpha, int beta, int threads = 1,
                     double seconds = 10.0) const {
    CoverTask task;
    task.levels = levels.data();
    task.num_features = num_features;
    task.num_samples = num_samples;
    task.classes = classes.data();
    task.alpha = alpha;
    task.beta = beta;
    task.seconds = seconds;
    task.num_threads = threads;
    return search_cover(task);
  }
  /// Whether a set, as bits, covers all pairs.
  bool fulfils(unsigned set, int alpha, int beta) const {
    for (int j = 1; j < num_samples; ++j)
      for (int i = 0; i < j; ++i) {
        const std::size_t a = static_cast<std::size_t>(i);
        const std::size_t b = static_cast<std::size_t>(j);
        const bool other = classes[a] != classes[b];
        int count = 0;
        for (int f = 0; f < num_features; ++f)
          count += (set >> f & 1u) && (at(f, i) != at(f, j)) == other;
        if (count < (other ? alpha : beta)) return false;
      }
    return true;
  }
  /// The size of the smallest set, by enumeration; -1: there is none.
  int smallest(int alpha, int beta) const {
    int best = -1;
    for (unsigned set = 0; set < 1u << num_features; ++set) {
      const int size = __builtin_popcount(set);
      if ((best < 0 || size < best) && fulfils(set, alpha, beta)) best = size;
    }
    return best;
  }
};

Table random_table(int num_features, int num_samples, int num_levels,
                   std::uint64_t seed) {
  Table table{num_features, num_samples, {}, {}};
  SplitMix random(seed);
  for (int s = 0; s < num_samples; ++s) {
    table.classes.push_back(s % 2);
    for (int f = 0; f < num_features; ++f) {
      const int noise = static_cast<int>(
          random.below(static_cast<std::uint64_t>(num_levels)));
      table.levels.push_back(random.below(2) == 0 ? s % 2 : noise);
    }
  }
  return table;
}

unsigned as_bits(const std::vector<int>& chosen) {
  unsigned set = 0;
  for (const int f : chosen) set |= 1u << f;
  return set;
}

}  // namespace

TEST_CASE("one feature that tells all is enough, and proven so") {
  // Feature 1 is the class; 0 and 2 carry no information.
  const Table table{3, 4, {0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1}, {0, 0, 1, 1}};
  const CoverAnswer found = table.search(1, 1);
  CHECK(found.chosen == std::vector<int>{1});
  CHECK(found.lower_bound == 1);
}

TEST_CASE("features that a pair can't do without are in every set") {
  const Table table{2, 2, {0, 0, 1, 1}, {0, 1}};
  const CoverAnswer found = table.search(2, 0);
  CHECK(found.chosen == std::vector<int>{0, 1});
  CHECK(found.in_all == std::vector<int>{0, 1});
  CHECK(found.lower_bound == 2);
  CHECK(found.pairs_left == 0);
}

TEST_CASE("nothing asked takes nothing") {
  const CoverAnswer found = random_table(5, 6, 2, 1).search(0, 0);
  CHECK(found.chosen.empty());
  CHECK(found.lower_bound == 0);
}

TEST_CASE(
    "bound <= optimum of all sets <= set found, which fulfils all pairs") {
  int tried = 0, with_gap = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Table table =
        random_table(10, 8, 2 + static_cast<int>(seed % 3), seed);
    for (int alpha = 1; alpha <= 3; ++alpha)
      for (int beta = 0; beta <= 2; ++beta) {
        const int optimum = table.smallest(alpha, beta);
        if (optimum < 0) continue;
        const CoverAnswer found = table.search(alpha, beta);
        CAPTURE(seed);
        CAPTURE(alpha);
        CAPTURE(beta);
        CHECK(table.fulfils(as_bits(found.chosen), alpha, beta));
        CHECK(static_cast<int>(found.chosen.size()) >= optimum);
        CHECK(found.lower_bound <= optimum);
        CHECK(found.bound <= optimum + 1e-9);
        CHECK(found.lower_bound >= found.bound - 1e-5);
        // Statements about every set, and about smaller ones, must hold.
        for (unsigned set = 0; set < 1u << table.num_features; ++set) {
          if (!table.fulfils(set, alpha, beta)) continue;
          for (const int f : found.in_all) CHECK((set >> f & 1u) == 1u);
          if (__builtin_popcount(set) >= static_cast<int>(found.chosen.size()))
            continue;
          for (const int f : found.in_smaller) CHECK((set >> f & 1u) == 1u);
          for (const int f : found.out_of_smaller) CHECK((set >> f & 1u) == 0u);
        }
        ++tried;
        with_gap += found.lower_bound < static_cast<int>(found.chosen.size());
      }
  }
  CHECK(tried > 50);
  CHECK(with_gap < tried);
}

TEST_CASE("the answer is the same for any number of threads") {
  const Table table = random_table(200, 24, 2, 7);
  const CoverAnswer one = table.search(3, 2), three = table.search(3, 2, 3);
  CHECK(one.chosen == three.chosen);
  CHECK(one.bound == three.bound);
}

TEST_CASE("with no time there is a set all the same") {
  const Table table = random_table(20, 12, 2, 3);
  if (!table.fulfils((1u << 20) - 1, 1, 1)) return;
  const CoverAnswer found = table.search(1, 1, 1, 1e-9);
  CHECK(table.fulfils(as_bits(found.chosen), 1, 1));
  CHECK(found.out_of_time);
}

TEST_CASE("agreements are counted") {
  const Table table{3, 3, {1, 2, 3, 1, 2, 4, 5, 6, 7}, {0, 0, 1}};
  CHECK(count_agreements(table.levels.data(), 3, 3) ==
        std::vector<int>{3, 2, 0, 2, 3, 0, 0, 0, 3});
}
