#include "cpu/filter/second_test.hpp"

#include <algorithm>

#include "core/base/poll.hpp"
#include "cpu/kernels/kernels_includes.hpp"

namespace fsknn {
namespace cpu {

void SecondTest::drop(std::int64_t row0, std::int64_t column0,
                      const std::int32_t* row_threshold,
                      const std::int32_t* column_threshold,
                      std::vector<Pair>& hits) {
  const std::int64_t wide = rows_.words_wide;
  if (wide == 0) return;
  const std::int64_t count = static_cast<std::int64_t>(hits.size());
  sums_.resize(hits.size());
  // The turns are short for any number of features, so that an interrupt is
  // noticed soon.
  const std::int64_t turn =
      std::max<std::int64_t>(8, (std::int64_t{1} << 26) / wide);
  for (std::int64_t first = 0; first < count; first += turn) {
    const std::int64_t now = std::min(turn, count - first);
    kernels_.differences(rows_.words.data() + row0 * wide,
                         columns_.words.data() + column0 * wide, wide,
                         hits.data() + first, now, sums_.data() + first);
    poll_after(0.1 * static_cast<double>(now) * static_cast<double>(wide));
  }
  std::size_t kept = 0;
  for (std::size_t h = 0; h < hits.size(); ++h) {
    const Pair hit = hits[h];
    const std::int64_t row = row0 + hit.row, column = column0 + hit.column;
    const double least = sums_[h] / kPartsOfUnit -
                         static_cast<double>(rows_.words_error[row]) -
                         static_cast<double>(columns_.words_error[column]);
    const double w = static_cast<double>(as_float(rows_.first[row])) +
                     static_cast<double>(as_float(columns_.first[column]));
    const double t =
        static_cast<double>(std::max(as_float(row_threshold[hit.row]),
                                     as_float(column_threshold[hit.column])));
    hits[kept] = hit;
    kept += least <= w * t ? 1 : 0;
  }
  hits.resize(kept);
}

}  // namespace cpu
}  // namespace fsknn
