// How far are the tensor cores' sums from the exact ones? The filter's bounds
// (src/cuda/filter/half_unit_rows.cu, half_bound.hpp) assume no more than
// sums_error() of the sum of magnitudes, (features + 16) 2^-22 for each
// range, which no vendor documents. Here rows made to lose as much as can be
// lost are multiplied by the filter's own kernel, and the worst loss is printed
// as a part of what is assumed. Ends with status 1 where it is more than all of
// it.

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/feature_ranges.cuh"
#include "cuda/filter/half_bound.hpp"
#include "cuda/filter/half_pairs.hpp"

namespace {

using fsknn::Sign;
using namespace fsknn::cuda;
using Tile = FilterTile;
using Random = std::mt19937_64;

constexpr std::int64_t kSlots = kFilterBlock;

/// [kSlots x depth] values that are halves.
struct Points {
  std::int64_t depth;
  std::vector<float> value;
  explicit Points(std::int64_t d)
      : depth(d), value(static_cast<std::size_t>(kSlots * d)) {}
  float& at(std::int64_t slot, std::int64_t f) {
    return value[static_cast<std::size_t>(slot * depth + f)];
  }
  void set(std::int64_t slot, std::int64_t f, double x) {
    at(slot, f) = __half2float(__double2half(x));
  }
  /// As HalfRows says.
  std::vector<__half> tiles() const {
    std::vector<__half> to(value.size());
    for (std::int64_t slot = 0; slot < kSlots; ++slot)
      for (std::int64_t f = 0; f < depth; ++f) {
        const std::int64_t within = f % Tile::depth;
        to[static_cast<std::size_t>(
            (f / Tile::depth * kSlots + slot) * Tile::depth +
            ((within / 8) ^ (slot & 7)) * 8 + within % 8)] =
            __float2half(value[static_cast<std::size_t>(slot * depth + f)]);
      }
    return to;
  }
};

std::vector<float> products(const Points& rows, const Points& columns) {
  Stream stream;
  const std::int64_t size = kSlots * rows.depth;
  const std::vector<__half> row_tiles = rows.tiles(),
                            column_tiles = columns.tiles();
  DeviceBuffer<__half> d_rows(size), d_columns(size);
  DeviceBuffer<Candidate> entries(kSlots * kSlots);
  DeviceBuffer<float> thresholds(kSlots), there(kSlots);
  DeviceBuffer<std::int32_t> counts(kSlots);
  DeviceBuffer<float4> sums_before(bytes_feature_range_sums(0, rows.depth) /
                                   16);
  upload(d_rows, row_tiles.data(), size, stream);
  upload(d_columns, column_tiles.data(), size, stream);
  clear_from(thresholds, 0, stream);
  clear_from(there, 0, stream);
  clear_from(counts, 0, stream);
  HalfWork work;
  work.rows.tiles = d_rows.data();
  work.columns.tiles = d_columns.data();
  work.rows.depth = work.columns.depth = rows.depth;
  work.rows.stride = work.columns.stride = size;
  work.column_there = there.data();
  work.feature_range_sums = sums_before.data();
  work.lists.entries = entries.data();
  work.lists.counts = counts.data();
  work.lists.thresholds = thresholds.data();
  work.lists.num_slots = kSlots;
  work.lists.capacity = static_cast<std::int32_t>(kSlots);
  work.jobs.num_blocks = 1;
  work.jobs.num_slabs = work.jobs.end_job = Tile::slabs;
  work.jobs.end_delta = 1;
  work.jobs.symmetric = false;
  work.jobs.fill = true;
  start_half_filter(Sign::signed_value, work, stream.get());
  std::vector<Candidate> found(static_cast<std::size_t>(kSlots * kSlots));
  download(found.data(), entries, entries.size(), stream);
  stream.wait();
  std::vector<float> sums;
  for (const Candidate& entry : found) sums.push_back(entry.similarity);
  return sums;
}

/// The worst error, as a part of what is assumed.
double worst(Points& rows, Points& columns) {
  const std::vector<float> found = products(rows, columns);
  double most = 0;
  // Sums of 64 bits are exact enough: what is looked for is above 2^-24. Of
  // many features some rows will do.
  const std::int64_t step = rows.depth > 512 ? 7 : 1;
  for (std::int64_t r = 0; r < kSlots; r += step)
    for (std::int64_t c = 0; c < kSlots; ++c) {
      long double sum = 0;
      double magnitude = 0;
      for (std::int64_t f = 0; f < rows.depth; ++f) {
        const double product =
            static_cast<double>(rows.at(r, f)) * columns.at(c, f);
        sum += product;
        magnitude += std::fabs(product);
      }
      if (magnitude == 0) continue;
      const double off = std::fabs(static_cast<double>(
          static_cast<long double>(
              found[static_cast<std::size_t>(r * kSlots + c)]) -
          sum));
      const double allowed = sums_error(rows.depth) * magnitude;
      if (!(off / allowed <= most)) most = off / allowed;
    }
  return most;
}

using Entry = std::function<double(Random&, std::int64_t slot, std::int64_t f,
                                   std::int64_t depth)>;

double normal(Random& random) {
  return std::normal_distribution<double>()(random);
}
double power(Random& random, int from, int to) {
  return std::ldexp(1.0, std::uniform_int_distribution<int>(from, to)(random));
}

struct Family {
  const char* name;
  Entry row, column;
};

const Entry kOnes = [](Random&, std::int64_t, std::int64_t, std::int64_t) {
  return 1.0;
};
const Entry kSigns = [](Random& random, std::int64_t, std::int64_t,
                        std::int64_t) { return random() % 2 ? 1.0 : -1.0; };

const std::vector<Family> kFamilies = {
    {"normal", [](Random& r, auto, auto, auto) { return normal(r) * 0x1p8; },
     [](Random& r, auto, auto, auto) { return normal(r) * 0x1p8; }},
    {"all of one sign, all bits set",
     [](Random& r, auto, auto, auto) { return 2047 * power(r, -3, 4); },
     [](Random& r, auto, auto, auto) { return 2047 * power(r, -3, 4); }},
    {"one large, then parts of its last bit",
     [](Random& r, std::int64_t slot, std::int64_t f, auto) {
       return f == slot % 32 ? 2047.0 * 16 : 2047 * power(r, -14, -6);
     },
     [](Random& r, std::int64_t slot, std::int64_t f, auto) {
       return f == slot % 32 ? 2047.0 * 16 : power(r, -2, 2);
     }},
    {"large ones that cancel, small ones between",
     [](Random& r, auto, std::int64_t f, std::int64_t depth) {
       const bool first = f == 0, last = f == depth - 1;
       return first ? 0x1p15 : last ? -0x1p15 : normal(r) * 0x1p-6;
     },
     [](Random&, auto, auto, auto) { return 1.0; }},
    {"large ones that cancel, anywhere",
     [](Random& r, std::int64_t slot, std::int64_t f, std::int64_t depth) {
       const std::int64_t step = 1 + slot % (depth / 2);
       if (f % (2 * step) == 0) return 0x1.ffcp15;
       return f % (2 * step) == step ? -0x1.ffcp15 : normal(r);
     },
     kOnes},
    {"alternating magnitudes",
     [](Random& r, auto, std::int64_t f, auto) {
       return f % 2 == 0 ? normal(r) * 0x1p12 : normal(r) * 0x1p-13;
     },
     [](Random& r, auto, std::int64_t f, auto) {
       return f % 2 == 1 ? normal(r) * 0x1p12 : normal(r) * 0x1p-13;
     }},
    {"growing",
     [](Random& r, auto, std::int64_t f, std::int64_t depth) {
       return (1 + 0.001 * normal(r)) *
              std::ldexp(1.0, static_cast<int>(f * 28 / depth) - 13);
     },
     kSigns},
    {"shrinking",
     [](Random& r, auto, std::int64_t f, std::int64_t depth) {
       return (1 + 0.001 * normal(r)) *
              std::ldexp(1.0, 14 - static_cast<int>(f * 28 / depth));
     },
     kSigns},
    {"subnormal halves",
     [](Random& r, auto, auto, auto) { return normal(r) * 0x1p-17; },
     [](Random& r, auto, auto, auto) { return normal(r) * 0x1p-17; }},
    {"subnormal and large",
     [](Random& r, auto, std::int64_t f, auto) {
       return f % 7 == 0 ? 0x1.ffcp15 : normal(r) * 0x1p-20;
     },
     [](Random& r, auto, auto, auto) { return normal(r); }},
    {"any exponents",
     [](Random& r, auto, auto, auto) { return normal(r) * power(r, -20, 12); },
     [](Random& r, auto, auto, auto) { return normal(r) * power(r, -20, 12); }},
};

}  // namespace

int main() {
  double most = 0;
  for (const std::int64_t depth : {64, 320, 1024, 2048, 2112, 4096})
    for (const Family& family : kFamilies) {
      Random random(1);
      Points rows(depth), columns(depth);
      for (std::int64_t slot = 0; slot < kSlots; ++slot)
        for (std::int64_t f = 0; f < depth; ++f) {
          rows.set(slot, f, family.row(random, slot, f, depth));
          columns.set(slot, f, family.column(random, slot, f, depth));
        }
      const double part = worst(rows, columns);
      std::printf("depth %5d, %-45s %.4f of the bound\n",
                  static_cast<int>(depth), family.name, part);
      std::fflush(stdout);
      if (!(part <= most)) most = part;
    }
  std::printf("worst: %.4f\n", most);
  return most <= 1.0 ? 0 : 1;
}
