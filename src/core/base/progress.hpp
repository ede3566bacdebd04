#pragma once

#include "core/base/errors.hpp"
#include "core/base/filter_numbers.hpp"

namespace fsknn {

/// How a search looks at its pairs, as far as its points decide.
struct ChosenFilter {
  FilterNumbers numbers = FilterNumbers::none;
  bool by_keys = false;  ///< sums or lengths tell pairs apart before it
};

/// Told how far the work is; asked whether to go on. Called on the thread that
/// started the work.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Between pieces of it, about ten times a second. done: share of the work, 0
  /// to 1; below 0: as before. Returns false to stop.
  virtual bool report(double done) = 0;
  /// By a search for the k nearest, before it meets pairs; of several parts, by
  /// each. Returns false to stop.
  virtual bool chosen(const ChosenFilter& filter) {
    (void)filter;
    return true;
  }
};

/// Of a search; progress: may be null.
inline void tell_chosen(Progress* progress, const ChosenFilter& filter) {
  if (progress != nullptr && !progress->chosen(filter)) throw Interrupted();
}

}  // namespace fsknn
