// Counts the permutations of 1 to n by Spearman's sum of squared differences.
//
// writes a line `n, S / 2, count` for each n from 2 to 21 and each S = sum of
// (i - p(i))^2 up to half of its range. S is even, and its distribution is
// symmetric, so the other half is known. No count exceeds 64 bits: 21! does, but
// its largest count is about 1e17. It takes half a minute and 4.4 GiB of memory,
// mostly for n = 21. See spearman-counts.R.
//
// The count is the coefficient of x^S in the permanent of the matrix
// x^((i - j)^2). The programme places the numbers 1, 2, ... in the first places.
// Its state is the set of numbers placed, whose size is the next place, so sets
// of one size form a layer. S of all permutations of a set is even or odd
// together: a polynomial stores S / 2, rounded down.

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using Counts = std::vector<std::uint64_t>;

// The sets of each size, in increasing order, and the place of each set there.
struct Layers {
  std::vector<std::vector<std::uint32_t>> sets;
  std::vector<std::uint32_t> place;
};

Layers layers_of(int n) {
  Layers layers;
  layers.sets.resize(static_cast<std::size_t>(n) + 1);
  for (std::uint32_t set = 0; set < (1u << n); ++set) {
    auto& layer =
        layers.sets[static_cast<std::size_t>(__builtin_popcount(set))];
    layers.place.push_back(static_cast<std::uint32_t>(layer.size()));
    layer.push_back(set);
  }
  return layers;
}

bool is_odd(std::uint32_t set, int size, int n) {
  int sum = 0;
  for (int j = 0; j < n; ++j) sum += set >> j & 1 ? j : 0;
  return ((sum - size * (size - 1) / 2) & 1) != 0;
}

// The counts up to half of the range. S only grows, so they need no others.
Counts spearman_counts(int n) {
  const Layers layers = layers_of(n);
  const auto width = static_cast<std::size_t>((n * n * n - n) / 12 + 1);
  Counts from(width);
  from[0] = 1;
  for (int size = 0; size < n; ++size) {
    const auto& sets = layers.sets[static_cast<std::size_t>(size)];
    const auto& next = layers.sets[static_cast<std::size_t>(size) + 1];
    Counts to(next.size() * width);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const bool odd = is_odd(sets[s], size, n);
      for (int j = 0; j < n; ++j) {
        if (sets[s] >> j & 1) continue;
        const int by = (j - size) * (j - size) + odd;
        const auto half = static_cast<std::size_t>(by / 2);
        const std::uint64_t* in = &from[s * width];
        std::uint64_t* out =
            &to[layers.place[sets[s] | 1u << j] * width + half];
        for (std::size_t at = 0; at + half < width; ++at) out[at] += in[at];
      }
    }
    from.swap(to);
  }
  return from;
}

}  // namespace

int main() {
  std::printf("n,half_sum,count\n");
  for (int n = 2; n <= 21; ++n) {
    const Counts counts = spearman_counts(n);
    for (std::size_t at = 0; at < counts.size(); ++at) {
      std::printf("%d,%zu,%llu\n", n, at,
                  static_cast<unsigned long long>(counts[at]));
    }
  }
}
