#include "core/within_answer.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/pieces.hpp"
#include "core/poll.hpp"

namespace fsknn {
namespace {

// Entries of a part that are written together.
constexpr std::size_t kWritten = 4096;

}  // namespace

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

struct WithinFile::Part {
  std::int64_t first;     ///< where it begins in the file, in entries
  std::int64_t size = 0;  ///< of all its rows
  std::mutex lock;        ///< of what follows
  std::int64_t written = 0;
  std::vector<Found> waiting;
};

WithinFile::WithinFile(std::string folder, std::int64_t part_bytes)
    : folder_(std::move(folder)), part_bytes_(part_bytes) {}

WithinFile::~WithinFile() = default;

void WithinFile::allocate(const Counts& counts) {
  const std::int64_t most =
      part_bytes_ / static_cast<std::int64_t>(sizeof(Found));
  std::int64_t total = 0;
  part_of_row_.reserve(counts.size());
  for (const std::int32_t count : counts) {
    if (parts_.empty() || parts_.back()->size + count > most) {
      parts_.push_back(std::make_unique<Part>());
      parts_.back()->first = total;
    }
    part_of_row_.push_back(static_cast<std::int32_t>(parts_.size()) - 1);
    parts_.back()->size += count;
    total += count;
  }
  file_ = std::make_unique<TemporaryFile>(
      folder_, static_cast<double>(total) * sizeof(Found));
}

void WithinFile::write(const Part& part, std::int64_t at,
                       const std::vector<Found>& what) {
  constexpr std::int64_t bytes = sizeof(Found);
  file_->write((part.first + at) * bytes, what.data(),
               static_cast<std::int64_t>(what.size()) * bytes);
}

void WithinFile::put(std::int64_t row, std::int32_t, const WithinEntry& entry) {
  Part& part = *parts_[static_cast<std::size_t>(
      part_of_row_[static_cast<std::size_t>(row)])];
  std::vector<Found> full;
  std::int64_t at = 0;
  {
    const std::lock_guard<std::mutex> held(part.lock);
    part.waiting.push_back({entry.distance, entry.correlation, entry.index,
                            static_cast<std::int32_t>(row)});
    if (part.waiting.size() < kWritten) return;
    full.swap(part.waiting);
    at = part.written;
    part.written += static_cast<std::int64_t>(full.size());
  }
  write(part, at, full);
}

void WithinFile::finish(const Counts&, int num_threads) {
  run_pieces(num_parts(), num_threads, {}, [&] {
    return [&](std::int64_t piece) {
      Part& part = *parts_[static_cast<std::size_t>(piece)];
      write(part, part.written, part.waiting);
      part.waiting = {};
      std::vector<Found> all = entries(piece);
      std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
        if (a.row != b.row) return a.row < b.row;
        return a.distance < b.distance ||
               (a.distance == b.distance && a.index < b.index);
      });
      poll();
      write(part, 0, all);
    };
  });
}

std::vector<WithinFile::Found> WithinFile::entries(std::int64_t piece) const {
  constexpr std::int64_t bytes = sizeof(Found);
  const Part& part = *parts_[static_cast<std::size_t>(piece)];
  std::vector<Found> all(static_cast<std::size_t>(part.size));
  file_->read(part.first * bytes, all.data(), part.size * bytes);
  return all;
}

}  // namespace fsknn
