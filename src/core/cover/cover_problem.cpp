#include "core/cover/cover_problem.hpp"

#include <algorithm>
#include <numeric>

namespace fsknn {
namespace {

int count_bits(std::uint64_t word) { return __builtin_popcountll(word); }

/// Whether a feature counts for a pair: it differs if the classes differ, and
/// agrees if they agree.
struct PairOfColumns {
  PairOfColumns(const CoverTask& task, SamplePair pair)
      : a(task.levels + static_cast<std::size_t>(pair.first) *
                            static_cast<std::size_t>(task.num_features)),
        b(task.levels + static_cast<std::size_t>(pair.second) *
                            static_cast<std::size_t>(task.num_features)),
        different(task.classes[pair.first] != task.classes[pair.second]) {}
  bool counts(int f) const { return (a[f] != b[f]) == different; }

  const int* a;
  const int* b;
  bool different;
};

}  // namespace

CoverProblem::CoverProblem(const CoverTask& task, Watch& watch) {
  find_needs(task, watch);
  make_bits(task, watch);
  drop_implied(watch);
  make_blocks(watch);
}

/// If a pair has no more features than it needs, every set has all of them.
/// These features reduce the needs of other pairs.
void CoverProblem::find_needs(const CoverTask& task, Watch& watch) {
  const int n = task.num_features;
  std::vector<char> forced(static_cast<std::size_t>(n), 0);
  for (int j = 1; j < task.num_samples; ++j) {
    watch.over();
    for (int i = 0; i < j; ++i) {
      const PairOfColumns pair(task, {i, j});
      const int need = pair.different ? task.alpha : task.beta;
      if (need <= 0) continue;
      int total = 0;
      for (int f = 0; f < n; ++f) total += pair.counts(f);
      pairs_.push_back({i, j});
      needs_.push_back(need);
      slack_.push_back(total - need);
      if (total > need) continue;
      for (int f = 0; f < n; ++f)
        if (pair.counts(f)) forced[static_cast<std::size_t>(f)] = 1;
    }
  }
  for (int f = 0; f < n; ++f)
    if (forced[static_cast<std::size_t>(f)]) forced_.push_back(f);
  std::size_t kept = 0;
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    const PairOfColumns pair(task, pairs_[p]);
    int need = needs_[p];
    for (const int f : forced_) need -= pair.counts(f);
    if (need <= 0) continue;
    pairs_[kept] = pairs_[p];
    needs_[kept] = need;
    slack_[kept++] = slack_[p];
  }
  pairs_.resize(kept);
  needs_.resize(kept);
  slack_.resize(kept);
  // The tightest pairs come first, so that those that matter are close in
  // memory.
  std::vector<std::size_t> order(kept);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t p, std::size_t q) { return slack_[p] < slack_[q]; });
  const std::vector<SamplePair> pairs = pairs_;
  const std::vector<int> needs = needs_, slack = slack_;
  for (std::size_t p = 0; p < kept; ++p) {
    pairs_[p] = pairs[order[p]];
    needs_[p] = needs[order[p]];
    slack_[p] = slack[order[p]];
  }
}

void CoverProblem::make_bits(const CoverTask& task, Watch& watch) {
  // Features that count for no remaining pair are useless.
  std::vector<char> useful(static_cast<std::size_t>(task.num_features), 0);
  for (const SamplePair samples : pairs_) {
    const PairOfColumns pair(task, samples);
    for (int f = 0; f < task.num_features; ++f)
      useful[static_cast<std::size_t>(f)] |= pair.counts(f);
  }
  for (const int f : forced_) useful[static_cast<std::size_t>(f)] = 0;
  for (int f = 0; f < task.num_features; ++f)
    if (useful[static_cast<std::size_t>(f)]) features_.push_back(f);
  num_words_ = (num_features() + 63) / 64;
  by_pair_.assign(pairs_.size() * static_cast<std::size_t>(num_words_), 0);
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    if (p % 256 == 0) watch.over();
    const PairOfColumns pair(task, pairs_[p]);
    std::uint64_t* words =
        by_pair_.data() + p * static_cast<std::size_t>(num_words_);
    for (std::size_t f = 0; f < features_.size(); ++f)
      words[f / 64] |= std::uint64_t{pair.counts(features_[f])} << (f % 64);
  }
}

/// The number of features that count for `pair` and not for `other`.
int CoverProblem::count_without(int pair, int other) const {
  const std::uint64_t* a = features_of(pair);
  const std::uint64_t* b = features_of(other);
  int count = 0;
  for (int w = 0; w < num_words_; ++w) count += count_bits(a[w] & ~b[w]);
  return count;
}

/// Pair q implies pair p if every set that covers q covers p: at least need(q)
/// - |features of q, not of p| of its features count for p. Only the tightest
/// pairs are tried as q. Others rarely imply a pair, and testing all pairs
/// would take longer than it saves.
void CoverProblem::drop_implied(Watch& watch) {
  constexpr std::size_t kTried = 128;
  std::vector<int> tried;
  std::size_t kept = 0;
  const std::size_t words = static_cast<std::size_t>(num_words_);
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    if (p % 256 == 0) watch.over();
    const bool implied = std::any_of(tried.begin(), tried.end(), [&](int q) {
      const int other = static_cast<int>(p);
      return need(q) >= need(other) &&
             need(q) - count_without(q, other) >= need(other);
    });
    if (implied) continue;
    pairs_[kept] = pairs_[p];
    needs_[kept] = needs_[p];
    slack_[kept] = slack_[p];
    std::copy_n(by_pair_.begin() + static_cast<std::ptrdiff_t>(p * words),
                words,
                by_pair_.begin() + static_cast<std::ptrdiff_t>(kept * words));
    if (tried.size() < kTried) tried.push_back(static_cast<int>(kept));
    ++kept;
  }
  pairs_.resize(kept);
  needs_.resize(kept);
  slack_.resize(kept);
  by_pair_.resize(kept * words);
}

void CoverProblem::make_blocks(Watch& watch) {
  const std::size_t n = features_.size();
  by_block_.assign(static_cast<std::size_t>(num_blocks()) * n, 0);
  for (int p = 0; p < num_pairs(); ++p) {
    if (p % 256 == 0) watch.over();
    std::uint8_t* bytes =
        by_block_.data() + static_cast<std::size_t>(p / 8) * n;
    const std::uint64_t* words = features_of(p);
    for (std::size_t f = 0; f < n; ++f)
      bytes[f] = static_cast<std::uint8_t>(
          bytes[f] | ((words[f / 64] >> (f % 64) & 1) << (p % 8)));
  }
}

}  // namespace fsknn
