#include "core/contract/row_scratch.hpp"

#include <algorithm>
#include <cmath>

namespace fsknn {

Medians::Middle Medians::middle() {
  const auto middle =
      values_.begin() + static_cast<std::ptrdiff_t>(values_.size() / 2);
  std::nth_element(values_.begin(), middle, values_.end());
  const double upper = *middle + 0.0;
  if (values_.size() % 2 == 1) return {upper, upper};
  return {*std::max_element(values_.begin(), middle) + 0.0, upper};
}

MedianAndMad Medians::operator()(const double* x, std::int64_t d) {
  values_.assign(x, x + d);
  const Middle of_row = middle();
  MedianAndMad m;
  m.lower = of_row.lower;
  m.above = (of_row.upper - of_row.lower) * 0.5;
  for (std::int64_t f = 0; f < d; ++f)
    values_[static_cast<std::size_t>(f)] = std::fabs(off_median(x[f], m));
  const Middle of_distances = middle();
  m.mad = (of_distances.lower + of_distances.upper) * 0.5;
  return m;
}

}  // namespace fsknn
