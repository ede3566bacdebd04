#include "cpu/filter/sample.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fsknn {
namespace cpu {

Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count) {
  Buffer<double> rows(count * points.padded);
  FilterReader reader(points);
  for (std::int64_t i = 0; i < count; ++i)
    std::copy_n(reader(sampled(points, i, count)), points.padded,
                rows.data() + i * points.padded);
  return rows;
}

Buffer<double> column_medians(const PreparedPoints& points) {
  const std::int64_t m = std::min(points.size(), kMiddleSample);
  Buffer<double> centre(points.padded);
  std::vector<double> column(static_cast<std::size_t>(m));
  const Buffer<double> rows = sample_rows(points, m);
  for (std::int64_t f = 0; f < points.padded; ++f) {
    for (std::int64_t i = 0; i < m; ++i)
      column[static_cast<std::size_t>(i)] = rows[i * points.padded + f];
    std::nth_element(column.begin(), column.begin() + m / 2, column.end());
    centre[f] = column[static_cast<std::size_t>(m / 2)];
  }
  return centre;
}

double median_length(const PreparedPoints& points,
                     const Buffer<double>& centre) {
  const std::int64_t m = std::min(points.size(), kMiddleSample);
  std::vector<double> lengths;
  FilterReader row(points);
  for (std::int64_t i = 0; i < m; ++i) {
    const double* x = row(sampled(points, i, m));
    double square = 0.0;
    for (std::int64_t f = 0; f < points.padded; ++f)
      square += (x[f] - centre[f]) * (x[f] - centre[f]);
    if (square > 0.0) lengths.push_back(std::sqrt(square));
  }
  if (lengths.empty()) return 0.0;
  const auto middle =
      lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

}  // namespace cpu
}  // namespace fsknn
