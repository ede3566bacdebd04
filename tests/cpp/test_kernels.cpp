// Compares each instruction set's kernels with the baseline's, on numbers with
// all bits that a kernel may get. Whole numbers and exact sums must be equal,
// and so must decisions on floats that involve no rounding.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/contract/arithmetic.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/triples/triples_kernels.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

using Words = std::vector<std::int32_t>;

/// All values of an enumeration: those before the first that `use` rejects.
template <class Value, class Use>
std::vector<Value> all_values(Use use) {
  std::vector<Value> all;
  try {
    for (int i = 0;; ++i) {
      use(static_cast<Value>(i));
      all.push_back(static_cast<Value>(i));
    }
  } catch (const std::logic_error&) {
    return all;
  }
}

std::vector<Product> all_products() {
  return all_values<Product>([](Product product) {
    kBaselineKernels.accumulate(product, nullptr, nullptr, 0, 0, nullptr);
  });
}

std::vector<Accumulation> all_accumulations() {
  return all_values<Accumulation>([](Accumulation accumulation) {
    with_accumulation(accumulation, [](auto) {});
  });
}

std::int32_t bits_of(float x) {
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// A step: any bits for whole numbers, but differences within 16 bits.
std::int32_t step_of(Product product, std::mt19937& random) {
  const std::int32_t any = static_cast<std::int32_t>(random());
  // Those of floats come last.
  if (product >= Product::float_smaller_sum)
    return bits_of(static_cast<float>(any) * 0x1p-20f);
  if (product == Product::largest_difference) {
    const auto half = [&] {
      return static_cast<std::uint32_t>(static_cast<int>(random() % 32767) -
                                        16383) &
             0xffffu;
    };
    return static_cast<std::int32_t>(half() | half() << 16);
  }
  if (product == Product::count_dot) {
    std::uint32_t bytes = 0;
    for (int shift = 0; shift < 32; shift += 8)
      bytes |= random() % (kMostCount + 1) << shift;
    return static_cast<std::int32_t>(bytes);
  }
  // Often the extremes of four bytes, or of two numbers of 16 bits.
  const std::uint32_t ends[] = {0x80808080u, 0x7f7f7f7fu, 0x80008000u,
                                0x7fff7fffu, 0xffffffffu, 0u};
  return random() % 4 == 0 ? static_cast<std::int32_t>(ends[random() % 6])
                           : any;
}

/// A panel; for bytes with its first step.
Words panel_of(Product product, std::int64_t steps, std::mt19937& random) {
  Words words(static_cast<std::size_t>(steps * Tile::panel));
  for (std::int32_t& word : words) word = step_of(product, random);
  if (first_steps(product) == 0) return words;
  for (std::size_t c = 0; c < Tile::panel; ++c) {
    std::int64_t total = 0;
    for (std::size_t at = c + Tile::panel; at < words.size(); at += Tile::panel)
      for (int shift = 0; shift < 32; shift += 8)
        total += static_cast<std::int8_t>(words[at] >> shift);
    words[c] = byte_offset(total);
  }
  return words;
}

double some_double(std::mt19937& random) {
  return std::ldexp(static_cast<double>(static_cast<std::int32_t>(random())),
                    static_cast<int>(random() % 40) - 20);
}

/// Zeros of both signs, and numbers that dwarf others.
double odd_double(std::mt19937& random) {
  const double special[] = {0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1p1000, 1.0};
  return random() % 3 == 0 ? special[random() % 6] : some_double(random);
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// A side of a test, in whole numbers that floats represent, or in such floats.
struct Numbers {
  Words threshold, first, second;
  Side side() const { return {threshold.data(), first.data(), second.data()}; }
};

bool is_whole(Test test) {
  return test == Test::similarity || test == Test::absolute_similarity ||
         test == Test::negative_similarity || test == Test::sum_distance ||
         test == Test::largest_difference;
}

bool has_float_sums(Test test) {
  return test == Test::float_sum_distance || test == Test::float_overlap ||
         test == Test::float_largest_difference;
}

Words numbers(std::size_t count, int least, int most, bool whole,
              std::mt19937& random) {
  Words words;
  for (std::size_t i = 0; i < count; ++i) {
    const int x = least + static_cast<int>(random() %
                                           static_cast<unsigned>(most - least));
    words.push_back(whole ? x : bits_of(static_cast<float>(x)));
  }
  return words;
}

Numbers side_of(Test test, std::size_t count, std::mt19937& random) {
  return {numbers(count, -40, 40, is_whole(test), random),
          numbers(count, 1, 9, is_whole(test), random),
          numbers(count, 0, 9, is_whole(test), random)};
}

}  // namespace

TEST_CASE("kernels sum the same whatever the numbers' bits are") {
  std::mt19937 random(1);
  for (const Product product : all_products())
    // Lengths around those where counters of few bits overflow: 31 and 256
    // steps.
    for (const std::int64_t length : {2, 6, 7, 30, 62, 64, 256, 258, 2050}) {
      const std::int64_t steps = product == Product::byte_difference
                                     ? (length + 1) / 2 * 2
                                     : length + first_steps(product);
      const Words a = panel_of(product, steps, random);
      Words b;
      for (int p = 0; p < Tile::panels; ++p) {
        const Words panel = panel_of(product, steps, random);
        b.insert(b.end(), panel.begin(), panel.end());
      }
      // Bytes differ as much as possible in every feature; all bits are shared;
      // and all counts are the largest.
      Words low(a.size(), 0), high(b.size(), -1);
      for (const bool ends : {false, true}) {
        if (ends && product != Product::byte_difference &&
            product != Product::common_bits && product != Product::count_dot)
          continue;
        if (ends && product == Product::common_bits) low.assign(a.size(), -1);
        if (ends && product == Product::count_dot) {
          low.assign(a.size(), kMostCount * 0x01010101);
          high.assign(b.size(), kMostCount * 0x01010101);
        }
        for (int panels = 1; panels <= Tile::panels; ++panels)
          for (const std::int64_t r : {0, 8}) {
            Words expected(Tile::rows * Tile::columns, 0);
            for (const Kernels* kernels : available_kernels()) {
              Words sums(Tile::rows * Tile::columns, 0);
              kernels->accumulate(product, (ends ? low : a).data() + r,
                                  (ends ? high : b).data(), panels, steps,
                                  sums.data());
              if (kernels == &kBaselineKernels) expected = sums;
              CAPTURE(kernels->name);
              CAPTURE(static_cast<int>(product));
              CAPTURE(steps);
              CHECK(sums == expected);
            }
          }
      }
    }
}

TEST_CASE("kernels have the differences of words that are farthest apart") {
  std::mt19937 random(5);
  // 65,536 of the largest differences are 2^31 - 2^17.
  for (const std::int64_t width : {32, 64, 320, 65536}) {
    constexpr std::int32_t kRows = 5;
    std::vector<std::int16_t> rows(static_cast<std::size_t>(kRows * width));
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] =
          static_cast<std::int16_t>(static_cast<int>(random() % 32767) - 16383);
    std::fill_n(rows.begin(), width, std::int16_t{-16383});
    std::fill_n(rows.begin() + width, width, std::int16_t{16383});
    std::vector<Pair> pairs;
    std::vector<std::int32_t> expected;
    for (std::int32_t i = 0; i < kRows; ++i)
      for (std::int32_t j = 0; j < kRows; ++j) {
        pairs.push_back({i, j});
        std::int64_t sum = 0;
        for (std::int64_t f = 0; f < width; ++f)
          sum += std::abs(rows[static_cast<std::size_t>(i * width + f)] -
                          rows[static_cast<std::size_t>(j * width + f)]);
        expected.push_back(static_cast<std::int32_t>(sum));
      }
    for (const Kernels* kernels : available_kernels()) {
      std::vector<std::int32_t> sums(pairs.size(), -1);
      kernels->differences(rows.data(), rows.data(), width, pairs.data(),
                           static_cast<std::int64_t>(pairs.size()),
                           sums.data());
      CAPTURE(kernels->name);
      CHECK(sums == expected);
    }
  }
}

TEST_CASE("kernels have the contract's sums of any doubles") {
  std::mt19937 random(2);
  for (const std::int64_t padded : {8, 16, 104}) {
    constexpr std::int64_t kRows = 11;
    std::vector<double> rows(static_cast<std::size_t>(kRows * padded));
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = i < rows.size() / 2 ? some_double(random) : odd_double(random);
    for (const Accumulation accumulation : all_accumulations()) {
      std::vector<Pair> pairs;
      for (std::int32_t i = 0; i < kRows; ++i)
        for (std::int32_t j = 0; j < kRows; ++j) pairs.push_back({i, j});
      std::vector<double> expected;
      for (const Pair& pair : pairs)
        expected.push_back(
            scalar_sum(accumulation, rows.data() + pair.row * padded,
                       rows.data() + pair.column * padded, padded));
      for (const Kernels* kernels : available_kernels()) {
        std::vector<double> sums(pairs.size(), -1.0);
        kernels->exact(accumulation, rows.data(), rows.data(), padded,
                       pairs.data(), static_cast<std::int64_t>(pairs.size()),
                       sums.data());
        CAPTURE(kernels->name);
        CAPTURE(static_cast<int>(accumulation));
        CHECK(same_bits(sums, expected));
      }
    }
  }
}

TEST_CASE("kernels decide the same where no float is rounded") {
  std::mt19937 random(3);
  for (int which = 0; which <= static_cast<int>(Test::float_overlap); ++which) {
    const Test test = static_cast<Test>(which);
    std::int64_t kept = 0, seen = 0;
    for (int round = 0; round < 20; ++round) {
      const Words sums = numbers(Tile::rows * Tile::columns, -40, 40,
                                 !has_float_sums(test), random);
      const Numbers rows = side_of(test, Tile::rows, random);
      Numbers columns = side_of(test, Tile::columns, random);
      // Infinite limits on both sides, and NaN.
      if (!is_whole(test)) {
        columns.threshold[3] = bits_of(HUGE_VALF);
        columns.threshold[20] = bits_of(-HUGE_VALF);
        columns.threshold[37] = bits_of(std::nanf(""));
      }
      // The numbers of upper bounds are always floats; `first` of two rows is
      // 2.
      const Numbers row = {
          {}, numbers(1, 1, 2, false, random), numbers(1, 0, 9, false, random)};
      const Numbers column = {{},
                              numbers(Tile::columns, 1, 2, false, random),
                              numbers(Tile::columns, 0, 9, false, random)};
      for (int panels = 1; panels <= Tile::panels; ++panels) {
        std::vector<std::uint64_t> expected;
        std::vector<float> nearest;
        for (const Kernels* kernels : available_kernels()) {
          std::vector<std::uint64_t> keep(Tile::rows, 0);
          kernels->test(test, sums.data(), panels, rows.side(), columns.side(),
                        keep.data());
          std::vector<float> best(2 * Tile::panel, 7.0f);
          kernels->lower_best(test, sums.data(), panels, row.side(),
                              column.side(), 1, 2, best.data());
          if (kernels == &kBaselineKernels) {
            expected = keep;
            nearest = best;
            for (const std::uint64_t mask : keep)
              kept += __builtin_popcountll(mask);
            seen += Tile::rows * Tile::panel * panels;
          }
          CAPTURE(kernels->name);
          CAPTURE(which);
          CHECK(keep == expected);
          CHECK(best == nearest);
        }
      }
    }
    CHECK(kept > 0);
    CHECK(kept < seen);
  }
}

TEST_CASE("kernels of missing values decide and sum the same") {
  std::mt19937 random(4);
  const auto floats = [&](std::size_t count, int least, int most) {
    std::vector<float> of;
    for (std::size_t i = 0; i < count; ++i)
      of.push_back(static_cast<float>(
          least +
          static_cast<int>(random() % static_cast<unsigned>(most - least))));
    return of;
  };
  for (int round = 0; round < 50; ++round) {
    const Words sums = numbers(Tile::columns, -90, 90, true, random);
    std::vector<std::vector<float>> own, others;
    for (int i = 0; i < 6; ++i) {
      own.push_back(floats(1, i == 3 ? -9 : 0, 9));
      others.push_back(floats(Tile::columns, i == 3 ? -9 : 0, 9));
    }
    const auto side = [](const std::vector<std::vector<float>>& of) {
      return MaskedSide{of[0].data(), of[1].data(), of[2].data(), of[4].data()};
    };
    const auto distances = [](const std::vector<std::vector<float>>& of) {
      return MaskedDistanceSide{of[0].data(), of[1].data(), of[2].data(),
                                of[3].data(), of[4].data(), of[5].data()};
    };
    std::vector<std::uint64_t> expected;
    for (const Kernels* kernels : available_kernels()) {
      std::vector<std::uint64_t> found;
      for (const Sign sign :
           {Sign::signed_value, Sign::absolute, Sign::negative})
        found.push_back(kernels->masked_test(sign, sums.data(), Tile::panels,
                                             0.5f, side(own), side(others)));
      found.push_back(kernels->masked_distance_test(
          sums.data(), Tile::panels, distances(own), distances(others)));
      if (kernels == &kBaselineKernels) expected = found;
      CAPTURE(kernels->name);
      CHECK(found == expected);
    }
  }
  const std::vector<float> panel = floats(40 * Tile::panel, -30, 30);
  Words list;
  for (std::int32_t length = 0; length < 25; ++length) {
    std::vector<float> expected;
    for (const Kernels* kernels : available_kernels()) {
      std::vector<float> found(2 * Tile::panel, -1.0f);
      kernels->masked_sums(panel.data(), list.data(), length, found.data(),
                           found.data() + Tile::panel);
      if (kernels == &kBaselineKernels) expected = found;
      CAPTURE(kernels->name);
      CHECK(found == expected);
    }
    list.push_back(length * 7 % 40);
  }
}

TEST_CASE("kernels have the contract's sums over what both rows have") {
  std::mt19937 random(6);
  constexpr std::int64_t kRows = 9, kPadded = 40;
  std::vector<double> rows(kRows * kPadded);
  for (double& x : rows)
    x = random() % 5 == 0 ? std::nan("") : some_double(random) * 0x1p-40;
  std::vector<Pair> pairs;
  for (std::int32_t i = 0; i < kRows; ++i)
    for (std::int32_t j = 0; j < kRows; ++j) pairs.push_back({i, j});
  for (const Accumulation accumulation :
       {Accumulation::dot, Accumulation::squared_difference,
        Accumulation::absolute_difference}) {
    MaskedTerms terms;
    terms.accumulation = accumulation;
    terms.num_features = kPadded;
    std::vector<double> expected;
    for (const Pair& pair : pairs)
      expected.push_back(masked_pair<ScalarLanes>(
          terms, rows.data() + pair.row * kPadded,
          rows.data() + pair.column * kPadded, kPadded));
    for (const Kernels* kernels : available_kernels()) {
      std::vector<double> found(pairs.size(), -7.0);
      kernels->masked(terms, rows.data(), rows.data(), kPadded, pairs.data(),
                      static_cast<std::int64_t>(pairs.size()), found.data());
      CAPTURE(kernels->name);
      CAPTURE(static_cast<int>(accumulation));
      CHECK(same_bits(found, expected));
    }
  }
}

TEST_CASE("kernels of triples sum and decide the same") {
  std::mt19937 random(5);
  constexpr std::int64_t kSteps = 21;
  constexpr std::size_t kSize = kSteps * TripleTile::panel;
  std::vector<float> a(kSize), b(kSize);
  for (std::vector<float>* panel : {&a, &b})
    for (float& x : *panel) x = static_cast<float>(random() % 64);
  std::vector<double> rows(3 * 24);
  for (double& x : rows) x = std::fabs(some_double(random));
  std::vector<float> sums, made;
  std::vector<std::uint32_t> masks;
  std::vector<double> exact;
  for (const Kernels* kernels : available_kernels()) {
    const TripleKernels& of = triple_kernels(*kernels);
    std::vector<float> s(TripleTile::size, 1.0f), larger(kSize);
    for (const bool add : {false, true})
      of.accumulate(a.data() + 4, b.data(), kSteps, add, s.data());
    of.larger(a.data() + 5, b.data(), kSteps, larger.data());
    std::vector<std::uint32_t> keep(TripleTile::rows);
    // The limit of row 0 and column 2 is their sum.
    of.test(s.data(), s.data() + 2, s.data(), 0.5f, keep.data());
    const std::vector<double> largest = {
        of.exact(rows.data(), rows.data() + 24, rows.data() + 48, 24)};
    if (kernels == &kBaselineKernels) {
      sums = s;
      made = larger;
      masks = keep;
      exact = largest;
    }
    CAPTURE(kernels->name);
    CHECK(s == sums);
    CHECK(larger == made);
    CHECK(keep == masks);
    CHECK(same_bits(largest, exact));
  }
  CHECK(masks[0] != 0);
  CHECK(masks[0] != 0xffffu);
}
