#include "core/files/shards.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/base/poll.hpp"
#include "core/files/digest.hpp"
#include "core/files/durable.hpp"

namespace fsknn {
namespace {

/// Adds the next `size` bytes of the file to both digests; either may be null.
void take(InputFile& file, const std::string& path, std::int64_t size,
          Digest* ends, Digest* whole) {
  std::vector<char> bytes(
      static_cast<std::size_t>(std::min(size, std::int64_t{1} << 20)));
  while (size > 0) {
    const std::int64_t part =
        std::min(size, static_cast<std::int64_t>(bytes.size()));
    if (file.read(bytes.data(), part) != part)
      throw FileFailure{path, "it became shorter", 0};
    if (ends != nullptr) ends->take(bytes.data(), part);
    if (whole != nullptr) whole->take(bytes.data(), part);
    size -= part;
  }
}

}  // namespace

FileFacts facts_of_file(const std::string& path, bool whole) {
  InputFile file(path);
  FileFacts facts;
  facts.bytes = file.size();
  Digest ends, all;
  const std::int64_t head = std::min(facts.bytes, kShardEnds);
  const std::int64_t tail = std::max(head, facts.bytes - kShardEnds);
  Digest* const into = whole ? &all : nullptr;
  take(file, path, head, &ends, into);
  if (whole)
    take(file, path, tail - head, nullptr, into);
  else
    file.go_to(tail);
  take(file, path, facts.bytes - tail, &ends, into);
  facts.ends = hexadecimal(ends.value());
  if (whole) facts.whole = hexadecimal(all.value());
  return facts;
}

void put_in_columns(const SparsePlaces& places, const std::int32_t* index,
                    const double* distance, std::int64_t rows,
                    std::int64_t columns, std::int64_t first_row,
                    std::int32_t missing) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int32_t number = index[c * rows + r];
      if (number == missing) continue;
      if (number < 1 || number > places.num_columns)
        throw std::out_of_range("a neighbour is none of the points");
      double& next = places.next[number - 1];
      if (places.row_of != nullptr) {
        const std::int64_t at = static_cast<std::int64_t>(next);
        places.row_of[at] = static_cast<std::int32_t>(first_row + r);
        if (places.values != nullptr)
          places.values[at] = distance[c * rows + r];
      }
      next += 1.0;
    }
    poll_after(10.0 * static_cast<double>(columns));
  }
}

}  // namespace fsknn
