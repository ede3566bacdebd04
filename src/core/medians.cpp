#include "core/medians.hpp"

#include <algorithm>
#include <cmath>

namespace fsknn {

double Medians::median() {
  const auto middle =
      values_.begin() + static_cast<std::ptrdiff_t>(values_.size() / 2);
  std::nth_element(values_.begin(), middle, values_.end());
  const double upper = *middle;
  if (values_.size() % 2 == 1) return upper + 0.0;
  const double lower = *std::max_element(values_.begin(), middle);
  return (lower + upper) * 0.5 + 0.0;
}

MedianAndMad Medians::operator()(const double* x, std::int64_t d) {
  values_.assign(x, x + d);
  MedianAndMad m;
  m.median = median();
  for (std::int64_t f = 0; f < d; ++f)
    values_[static_cast<std::size_t>(f)] = std::fabs(x[f] - m.median);
  m.mad = median();
  return m;
}

}  // namespace fsknn
