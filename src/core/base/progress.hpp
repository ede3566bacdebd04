#pragma once

#include <cstdint>

#include "core/base/errors.hpp"
#include "core/base/filter_numbers.hpp"

namespace fsknn {

/// How a search filters its pairs, as far as its points decide.
struct ChosenFilter {
  FilterNumbers numbers = FilterNumbers::none;
  bool by_keys = false;  ///< keys or boxes prune pairs before it
};

/// Receives the progress of the work and decides whether to go on. Called on
/// the thread that started the work.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Called between pieces, about ten times a second. done: share of the work,
  /// 0 to 1; negative: unchanged. Returns false to stop.
  virtual bool report(double done) = 0;
  /// Called by a search for the k nearest before its first pairs; by each part
  /// if there are several. Returns false to stop.
  virtual bool chosen(const ChosenFilter& filter) {
    (void)filter;
    return true;
  }
};

/// A part of the whole work.
class PartOfProgress final : public Progress {
 public:
  explicit PartOfProgress(Progress* whole, double from = 0.0, double to = 1.0)
      : whole_(whole), from_(from), to_(to) {}
  /// Sets this to part `at`, from 0, of `of` parts of equal length.
  void set_part(std::int64_t at, std::int64_t of) {
    from_ = static_cast<double>(at) / static_cast<double>(of);
    to_ = static_cast<double>(at + 1) / static_cast<double>(of);
  }
  bool report(double done) override {
    return whole_->report(done < 0.0 ? done : from_ + (to_ - from_) * done);
  }
  bool chosen(const ChosenFilter& filter) override {
    return whole_->chosen(filter);
  }

 private:
  Progress* whole_;
  double from_, to_;
};

/// Reports the filter of a search; progress may be null.
inline void tell_chosen(Progress* progress, const ChosenFilter& filter) {
  if (progress != nullptr && !progress->chosen(filter)) throw Interrupted();
}

}  // namespace fsknn
