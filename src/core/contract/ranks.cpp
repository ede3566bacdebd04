#include "core/contract/row_scratch.hpp"

#include "core/base/sorting.hpp"

namespace fsknn {

void AverageRanks::operator()(double* x, std::int64_t d) {
  sorted_.resize(static_cast<std::size_t>(d));
  for (std::int64_t f = 0; f < d; ++f)
    sorted_[static_cast<std::size_t>(f)] = {x[f], f};
  sort_in_runs(sorted_, spare_, [](const Entry& a, const Entry& b) {
    return a.value < b.value;
  });
  std::size_t first = 0;
  while (first < sorted_.size()) {
    std::size_t last = first;
    while (last + 1 < sorted_.size() &&
           sorted_[last + 1].value == sorted_[first].value)
      ++last;
    // The average of the ranks first + 1 .. last + 1 is a whole number or a
    // half.
    const double rank = 0.5 * static_cast<double>(first + last + 2);
    for (std::size_t i = first; i <= last; ++i) x[sorted_[i].at] = rank;
    first = last + 1;
  }
}

}  // namespace fsknn
