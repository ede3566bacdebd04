#include "core/cover/cover_search.hpp"

#include <algorithm>

namespace fsknn {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Calls use(f) for each feature that counts for the pair.
template <class Use>
void for_features(const CoverProblem& problem, int pair, Use use) {
  const std::uint64_t* words = problem.features_of(pair);
  for (int w = 0; w < problem.num_words(); ++w)
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1)
      use(64 * w + __builtin_ctzll(bits));
}

}  // namespace

CoverSearch::CoverSearch(const CoverProblem& problem)
    : problem_(problem),
      num_features_(problem.num_features()),
      num_pairs_(problem.num_pairs()),
      in_(at(num_features_)),
      counts_(at(num_pairs_)),
      weights_(at(num_pairs_), 1),
      gains_(at(num_features_)),
      losses_(at(num_features_)),
      place_(at(num_pairs_)),
      changed_(at(num_features_)) {}

/// Removes all features, so that every pair is uncovered.
void CoverSearch::clear() {
  size_ = 0;
  std::fill(in_.begin(), in_.end(), char{0});
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(weights_.begin(), weights_.end(), Weight{1});
  std::fill(gains_.begin(), gains_.end(), Weight{0});
  lacking_.resize(at(num_pairs_));
  for (int p = 0; p < num_pairs_; ++p) {
    lacking_[at(p)] = p;
    place_[at(p)] = p;
    shift(gains_, p, 1);
  }
  losses_ = gains_;
}

void CoverSearch::shift(std::vector<Weight>& sums, int pair, Weight by) {
  Weight* s = sums.data();
  for_features(problem_, pair, [s, by](int f) { s[f] += by; });
}

void CoverSearch::set_lacking(int pair, bool lacks) {
  if (lacks) {
    place_[at(pair)] = static_cast<int>(lacking_.size());
    lacking_.push_back(pair);
    return;
  }
  const int where = place_[at(pair)];
  lacking_[at(where)] = lacking_.back();
  place_[at(lacking_.back())] = where;
  lacking_.pop_back();
  place_[at(pair)] = -1;
}

void CoverSearch::change(int f, int by) {
  in_[at(f)] = by > 0;
  size_ += by;
  changed_[at(f)] = step_;
  for (int b = 0; b < problem_.num_blocks(); ++b) {
    for (unsigned bits = problem_.block(b)[f]; bits != 0; bits &= bits - 1) {
      const int p = 8 * b + __builtin_ctz(bits);
      const int before = counts_[at(p)] - problem_.need(p);
      const int after = before + by;
      counts_[at(p)] += by;
      // The pair changes between uncovered (< 0), exactly covered (0) and more.
      if ((before < 0) != (after < 0)) {
        shift(gains_, p, by > 0 ? -weights_[at(p)] : weights_[at(p)]);
        set_lacking(p, after < 0);
      }
      if ((before <= 0) != (after <= 0))
        shift(losses_, p, by > 0 ? -weights_[at(p)] : weights_[at(p)]);
    }
  }
}

void CoverSearch::keep_if_smaller() {
  if (found_ && size_ >= static_cast<int>(best_.size())) return;
  found_ = true;
  best_.clear();
  for (int f = 0; f < num_features_; ++f)
    if (in_[at(f)]) best_.push_back(f);
}

void CoverSearch::construct(const std::vector<double>& costs, Watch& watch) {
  clear();
  for (int f = 0; f < num_features_; ++f) {
    if (costs[at(f)] < 0.0) add(f);
    watch.over();
  }
  while (!lacking_.empty()) {
    int best = -1;
    for (int f = 0; f < num_features_; ++f) {
      if (in_[at(f)]) continue;
      if (best < 0 || gains_[at(f)] > gains_[at(best)] ||
          (gains_[at(f)] == gains_[at(best)] && costs[at(f)] < costs[at(best)]))
        best = f;
    }
    add(best);
    watch.over();
  }
  for (;;) {
    int dearest = -1;
    for (int f = 0; f < num_features_; ++f)
      if (in_[at(f)] && losses_[at(f)] == 0 &&
          (dearest < 0 || costs[at(f)] > costs[at(dearest)]))
        dearest = f;
    if (dearest < 0) break;
    remove(dearest);
    watch.over();
  }
  keep_if_smaller();
}

/// The feature of the set with the smallest loss (the longest unchanged of
/// equals); -1 if there is none except `barred`.
int CoverSearch::cheapest_to_lose(int barred) const {
  int best = -1;
  for (int f = 0; f < num_features_; ++f) {
    if (!in_[at(f)] || f == barred) continue;
    if (best < 0 || losses_[at(f)] < losses_[at(best)] ||
        (losses_[at(f)] == losses_[at(best)] &&
         changed_[at(f)] < changed_[at(best)]))
      best = f;
  }
  return best;
}

/// The feature with the largest gain that counts for the pair; -1 if all of
/// them are in the set or barred.
int CoverSearch::best_for(int pair, int barred) const {
  int best = -1;
  for_features(problem_, pair, [&](int f) {
    if (in_[at(f)] || f == barred) return;
    if (best < 0 || gains_[at(f)] > gains_[at(best)] ||
        (gains_[at(f)] == gains_[at(best)] &&
         changed_[at(f)] < changed_[at(best)]))
      best = f;
  });
  return best;
}

void CoverSearch::improve(int enough, int patience, Watch& watch) {
  if (num_pairs_ == 0) return;
  // The search starts from the best set.
  clear();
  for (const int f : best_) {
    add(f);
    watch.over();
  }
  int added = -1;
  for (int waited = 0; waited < patience && !watch.over(); ++waited) {
    ++step_;
    // This set covers all pairs: continue with a smaller one.
    while (lacking_.empty()) {
      const int before = static_cast<int>(best_.size());
      keep_if_smaller();
      if (static_cast<int>(best_.size()) < before) waited = 0;
      if (static_cast<int>(best_.size()) <= enough) return;
      remove(cheapest_to_lose(-1));
    }
    const int out = cheapest_to_lose(added);
    if (out >= 0) remove(out);
    const int pair =
        lacking_[random_.below(static_cast<std::uint32_t>(lacking_.size()))];
    const int in = best_for(pair, out);
    added = in;
    if (in >= 0) add(in);
    for (const int p : lacking_) {
      ++weights_[at(p)];
      shift(gains_, p, 1);
      shift(losses_, p, 1);
    }
  }
}

}  // namespace fsknn
