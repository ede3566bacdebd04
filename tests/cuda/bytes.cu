// Are the tensor cores' sums of products of bytes what whole numbers say? Rows
// of random bytes, of the largest ones and of few are multiplied by the
// filter's own kernel, for rows and columns of all lengths, up to the longest
// whose sums 32 bits hold, or of the lengths that are given (multiples of 32).
// Ends with status 1 where a sum is another.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/byte_pairs.hpp"

namespace {

using fsknn::Sign;
using namespace fsknn::cuda;
using Random = std::mt19937_64;

constexpr std::int64_t kSlots = kFilterBlock;

/// [kSlots x depth], in the order that ByteRows says.
struct Bytes {
  explicit Bytes(std::int64_t d)
      : depth(d), tiles(static_cast<std::size_t>(kSlots * d)) {}
  std::int8_t& at(std::int64_t slot, std::int64_t f) {
    constexpr std::int64_t chunk = ByteTile::chunk;
    return tiles[static_cast<std::size_t>((f / chunk * kSlots + slot) * chunk +
                                          f % chunk)];
  }
  std::int64_t depth;
  std::vector<std::int8_t> tiles;
};

std::vector<Candidate> products(const Bytes& rows, const Bytes& columns) {
  Stream stream;
  const std::int64_t size = kSlots * rows.depth;
  DeviceBuffer<std::int8_t> d_rows(size), d_columns(size);
  DeviceBuffer<Candidate> entries(kSlots * kSlots);
  DeviceBuffer<float> thresholds(kSlots), there(kSlots);
  DeviceBuffer<std::int32_t> counts(kSlots);
  upload(d_rows, rows.tiles.data(), size, stream);
  upload(d_columns, columns.tiles.data(), size, stream);
  clear_from(thresholds, 0, stream);
  clear_from(there, 0, stream);
  clear_from(counts, 0, stream);
  ByteWork work;
  work.rows = {d_rows.data(), rows.depth, size};
  work.columns = {d_columns.data(), rows.depth, size};
  work.column_there = there.data();
  work.lists.entries = entries.data();
  work.lists.counts = counts.data();
  work.lists.thresholds = thresholds.data();
  work.lists.num_slots = kSlots;
  work.lists.capacity = static_cast<std::int32_t>(kSlots);
  work.jobs.num_blocks = 1;
  work.jobs.num_slabs = work.jobs.end_job = FilterTile::slabs;
  work.jobs.end_delta = 1;
  work.jobs.symmetric = false;
  work.jobs.fill = true;
  start_byte_filter(Sign::signed_value, work, stream.get());
  std::vector<Candidate> found(static_cast<std::size_t>(kSlots * kSlots));
  download(found.data(), entries, entries.size(), stream);
  stream.wait();
  return found;
}

/// Of every row, or of some where there are many features.
std::int64_t wrong_sums(Bytes& rows, Bytes& columns) {
  const std::vector<Candidate> found = products(rows, columns);
  const std::int64_t apart = rows.depth > 512 ? 37 : 1;
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < kSlots; r += apart)
    for (std::int64_t c = 0; c < kSlots; ++c) {
      std::int32_t sum = 0;
      for (std::int64_t f = 0; f < rows.depth; ++f)
        sum += rows.at(r, f) * columns.at(c, f);
      const Candidate& entry = found[static_cast<std::size_t>(r * kSlots + c)];
      wrong += entry.similarity != static_cast<float>(sum) || entry.slot != c;
    }
  return wrong;
}

using Entry = std::function<int(Random&, std::int64_t slot, std::int64_t f)>;

struct Family {
  const char* name;
  Entry entry;
};

const std::vector<Family> kFamilies = {
    {"any",
     [](Random& r, auto, auto) { return static_cast<int>(r() % 255) - 127; }},
    {"largest", [](Random&, auto, auto) { return 127; }},
    {"least", [](Random&, auto slot, auto) { return slot % 2 ? -127 : 127; }},
    {"one feature each",
     [](Random&, auto slot, auto f) {
       return f % 256 == slot ? 1 + static_cast<int>(slot % 100) : 0;
     }},
};

}  // namespace

int main(int argc, char** argv) {
  constexpr std::int64_t longest = kMostBytes / ByteTile::step * ByteTile::step;
  std::int64_t wrong = 0;
  std::vector<std::int64_t> depths = {32,  64,  96,   128,  160,   192,    224,
                                      320, 384, 1024, 4128, 16640, longest};
  if (argc > 1) depths.clear();
  for (int at = 1; at < argc; ++at) depths.push_back(std::atoll(argv[at]));
  for (const std::int64_t depth : depths)
    for (const Family& family : kFamilies) {
      Random random(1);
      Bytes rows(depth), columns(depth);
      for (std::int64_t slot = 0; slot < kSlots; ++slot)
        for (std::int64_t f = 0; f < depth; ++f) {
          rows.at(slot, f) =
              static_cast<std::int8_t>(family.entry(random, slot, f));
          columns.at(slot, f) = static_cast<std::int8_t>(
              family.entry(random, (slot * 7 + 3) % kSlots, f));
        }
      const std::int64_t of_these = wrong_sums(rows, columns);
      std::printf("depth %6d, %-20s %lld wrong\n", static_cast<int>(depth),
                  family.name, static_cast<long long>(of_these));
      wrong += of_these;
    }
  return wrong == 0 ? 0 : 1;
}
