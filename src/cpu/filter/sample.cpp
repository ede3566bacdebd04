#include "cpu/filter/sample.hpp"

#include <algorithm>
#include <vector>

namespace fsknn {
namespace cpu {

Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count) {
  Buffer<double> rows(count * points.padded);
  RowReader reader(points);
  for (std::int64_t i = 0; i < count; ++i)
    reader.make(sampled(points, i, count), rows.data() + i * points.padded);
  return rows;
}

Buffer<double> column_medians(const PreparedPoints& points) {
  const std::int64_t m = std::min<std::int64_t>(points.size(), 63);
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

}  // namespace cpu
}  // namespace fsknn
