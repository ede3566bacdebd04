#pragma once

// Sorting that can be interrupted, for long vectors.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/base/poll.hpp"

namespace fsknn {

/// As std::sort(). Sorts runs of about 10 ms each, and merges them through
/// `spare`, which may have any size; polls in between.
template <class T, class Less>
void sort_in_runs(std::vector<T>& values, std::vector<T>& spare, Less less) {
  constexpr std::size_t kRun = std::size_t{1} << 17;
  constexpr double kSortNanoseconds = 80.0, kMergeNanoseconds = 10.0;
  const std::size_t size = values.size();
  for (std::size_t first = 0; first < size; first += kRun) {
    const std::size_t end = std::min(first + kRun, size);
    std::sort(values.begin() + static_cast<std::ptrdiff_t>(first),
              values.begin() + static_cast<std::ptrdiff_t>(end), less);
    poll_after(kSortNanoseconds * static_cast<double>(end - first));
  }
  for (std::size_t run = kRun; run < size; run *= 2) {
    spare.resize(size);
    for (std::size_t first = 0; first < size; first += 2 * run) {
      const std::size_t middle = std::min(first + run, size);
      const std::size_t end = std::min(middle + run, size);
      for (std::size_t a = first, b = middle, at = first; at < end; ++at) {
        const bool upper =
            a == middle || (b < end && less(values[b], values[a]));
        spare[at] = values[upper ? b++ : a++];
        if (at % kRun == 0) poll_after(kMergeNanoseconds * kRun);
      }
    }
    values.swap(spare);
  }
}

}  // namespace fsknn
