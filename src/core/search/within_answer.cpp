#include "core/search/within_answer.hpp"

#include <algorithm>

#include "core/base/pieces.hpp"

namespace fsknn {

void WithinRows::finish(const Counts& counts, int num_threads) {
  constexpr std::int64_t block = 64;
  const std::int64_t num_rows = static_cast<std::int64_t>(counts.size());
  double entries = 0.0;
  for (const std::int32_t count : counts) entries += count;
  run_pieces((num_rows + block - 1) / block,
             useful_threads(num_threads, 20.0 * entries), {}, [&] {
               return [&](std::int64_t piece) {
                 const std::int64_t end =
                     std::min(num_rows, (piece + 1) * block);
                 for (std::int64_t i = piece * block; i < end; ++i)
                   sort_row(i, counts[static_cast<std::size_t>(i)]);
               };
             });
}

void WithinRows::sort_row(std::int64_t row, std::int32_t size) {
  if (size < 2) return;
  const Row at = this->row(row);
  std::vector<WithinEntry> entries(static_cast<std::size_t>(size));
  for (std::int32_t e = 0; e < size; ++e)
    entries[static_cast<std::size_t>(e)] = {
        at.distance[e], at.correlation != nullptr ? at.correlation[e] : 0.0,
        at.index[e]};
  std::sort(entries.begin(), entries.end(),
            [](const WithinEntry& a, const WithinEntry& b) {
              return a.distance < b.distance ||
                     (a.distance == b.distance && a.index < b.index);
            });
  for (std::int32_t e = 0; e < size; ++e)
    put(row, e, entries[static_cast<std::size_t>(e)]);
}

}  // namespace fsknn
