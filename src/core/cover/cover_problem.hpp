#pragma once

// The rest of a cover problem after including the features that every set must
// have, as bits.

#include <cstdint>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/cover/cover.hpp"

namespace fsknn {

/// The remaining time, and whether the user interrupted the work.
class Watch {
 public:
  Watch(double seconds, Progress* progress)
      : seconds_(seconds), progress_(progress) {}
  double elapsed() const { return seconds_since(start_); }
  double left() const { return seconds_ - elapsed(); }
  /// Whether the time is up. Throws Interrupted.
  bool over() {
    if (progress_ != nullptr && seconds_since(asked_) > 0.1) {
      asked_ = Clock::now();
      const double share = seconds_ > 0.0 ? elapsed() / seconds_ : 1.0;
      if (!progress_->report(share < 1.0 ? share : 1.0)) throw Interrupted();
    }
    return left() <= 0.0;
  }

 private:
  double seconds_;
  Progress* progress_;
  Clock::time_point start_ = Clock::now(), asked_ = start_;
};

class CoverProblem {
 public:
  CoverProblem(const CoverTask& task, Watch& watch);

  int num_pairs() const { return static_cast<int>(needs_.size()); }
  int num_features() const { return static_cast<int>(features_.size()); }
  int need(int pair) const { return needs_[static_cast<std::size_t>(pair)]; }
  SamplePair samples(int pair) const {
    return pairs_[static_cast<std::size_t>(pair)];
  }
  /// The user's number of the feature.
  int feature_id(int f) const { return features_[static_cast<std::size_t>(f)]; }
  /// Features in every set; not among the features above.
  const std::vector<int>& forced() const { return forced_; }

  int num_words() const { return num_words_; }
  /// The features that count for a pair: [num_words].
  const std::uint64_t* features_of(int pair) const {
    return by_pair_.data() + static_cast<std::size_t>(pair) *
                                 static_cast<std::size_t>(num_words_);
  }
  /// The pairs of a block of 8 that each feature counts for: [num_features]
  /// bytes.
  int num_blocks() const { return (num_pairs() + 7) / 8; }
  const std::uint8_t* block(int b) const {
    return by_block_.data() + static_cast<std::size_t>(b) * features_.size();
  }
  double bytes() const {
    return static_cast<double>(by_block_.size() + 8 * by_pair_.size());
  }

 private:
  void find_needs(const CoverTask& task, Watch& watch);
  void drop_implied(Watch& watch);
  void make_bits(const CoverTask& task, Watch& watch);
  void make_blocks(Watch& watch);
  int count_without(int pair, int other) const;

  std::vector<SamplePair> pairs_;
  std::vector<int> needs_, slack_;
  std::vector<int> features_, forced_;
  int num_words_ = 0;
  std::vector<std::uint64_t> by_pair_;
  std::vector<std::uint8_t> by_block_;
};

}  // namespace fsknn
