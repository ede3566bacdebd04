#include "cpu/filter/bytes_pay.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/passing_pairs.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sample.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Nanoseconds, on an AMD EPYC of 2023 with AVX-512 VNNI; only what they are
// beside each other counts. inst/bench/cpu.R has both forms side by side.
constexpr double kExactPair = 50.0;
constexpr double kExactFeature = 0.3;

constexpr std::int64_t kSampledRows = 24;
// Each row's nearest among so many columns that it has this many of its k.
constexpr std::int64_t kSampledNearest = 2;
constexpr std::int64_t kMostColumns = 1 << 14;

bool is_avx2(const Kernels& kernels) {
#ifdef FSKNN_X86_KERNELS
  return &kernels == &kAvx2Kernels;
#else
  static_cast<void>(kernels);
  return false;
#endif
}

/// What 8 bits save of a feature of a pair in the filter. Differences: AVX2 on
/// an AMD EPYC without AVX-512; with it, by how many instructions they are
/// fewer than of products, whose price was measured.
double saved_a_feature(Product wider, const Kernels& kernels) {
  switch (wider) {
    case Product::dot: return 0.0049;
    case Product::smaller_sum: return is_avx2(kernels) ? 0.014 : 0.0045;
    case Product::float_smaller_sum: return is_avx2(kernels) ? 0.035 : 0.013;
    default: return 0.0;  // there is nothing wider
  }
}

/// What a row's bytes may be off, in what the filter compares, times w: of two
/// rows, (g_i + g_j) / (w_i + w_j).
struct ByteError {
  double g, w;
  double with(const ByteError& other) const {
    return (g + other.g) / (w + other.w);
  }
};

/// One row, packed.
class ByteBound {
 public:
  ByteBound(const FilterScale& scale, std::int64_t padded)
      : packer_(scale, padded) {
    for (Buffer<std::int32_t>* numbers :
         {&row_.first, &row_.second, &row_.first_upper, &row_.second_upper})
      *numbers = Buffer<std::int32_t>(1);
  }
  ByteError operator()(const double* row, double row_sum) {
    double error = 0.0;
    packer_.load(row);
    const FilterScale& scale = packer_.scale;
    scale.form->pack_row(packer_, row_, row_sum, 0, &error);
    const double g = static_cast<double>(as_float(row_.second[0]));
    if (scale.form == &kByteProportion)
      return {g, static_cast<double>(as_float(row_.first[0]))};
    return {g * scale.unit, 0.5};
  }

 private:
  RowPacker packer_;
  FilterRows row_;
};

/// A distance, as the filter sees it.
double compared(const MetricEntry& metric, const DistanceRule& rule,
                double distance) {
  return metric.least_overlap != nullptr ? 1.0 - metric.least_overlap(distance)
                                         : rule.before_scaling(distance);
}

/// How many times as many pairs pass in 8 bits, by some rows and columns.
double times_in_bytes(const MetricEntry& metric, const DistanceRule& rule,
                      const Kernels& kernels, const PreparedPoints& points,
                      const PreparedPoints* queries, std::int64_t k,
                      const FilterScale& bytes) {
  const std::int64_t n = points.size(), padded = points.padded;
  const PreparedPoints& of = queries != nullptr ? *queries : points;
  const std::int64_t num_rows = std::min(kSampledRows, of.size());
  const std::int64_t num_columns = std::min(
      n, std::min(kMostColumns, std::max<std::int64_t>(
                                    64, (kSampledNearest * n + k - 1) / k)));
  ByteBound bound_of(bytes, padded);
  Buffer<double> rows(num_rows * padded);
  std::vector<ByteError> bound(static_cast<std::size_t>(num_rows));
  std::vector<Pair> pairs(static_cast<std::size_t>(num_rows));
  std::vector<double> sums(static_cast<std::size_t>(num_rows));
  RowReader row(of), column(points);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    const Place place = sampled(of, r, num_rows);
    row.make(place, rows.data() + r * padded);
    bound[static_cast<std::size_t>(r)] =
        bound_of(rows.data() + r * padded, of.sums[place.value]);
    pairs[static_cast<std::size_t>(r)] = {static_cast<std::int32_t>(r), 0};
  }
  std::vector<std::vector<SeenPair>> seen(static_cast<std::size_t>(num_rows));
  for (std::int64_t c = 0; c < num_columns; ++c) {
    const Place at = sampled(points, c, num_columns);
    const double* x = column(at);
    const ByteError own = bound_of(x, points.sums[at.value]);
    kernels.exact(metric.accumulation, rows.data(), x, padded, pairs.data(),
                  num_rows, sums.data());
    for (std::int64_t r = 0; r < num_rows; ++r) {
      const Place place = sampled(of, r, num_rows);
      if (queries == nullptr && place.value == at.value) continue;
      const std::size_t i = static_cast<std::size_t>(r);
      const double distance =
          rule(sums[i], of.sums[place.value], points.sums[at.value]);
      seen[i].push_back({compared(metric, rule, distance), own.with(bound[i])});
    }
  }
  const std::int64_t nearest = std::max<std::int64_t>(1, k * num_columns / n);
  return times_as_many(seen, nearest);
}

}  // namespace

bool subtracts_bytes(const Kernels& kernels) {
  return &kernels != &kBaselineKernels;
}

bool multiplies_bytes(const Kernels& kernels) {
#ifdef FSKNN_X86_KERNELS
  return &kernels == &kAvx512VnniKernels || &kernels == &kAvx512PopcntKernels;
#else
  static_cast<void>(kernels);
  return false;
#endif
}

bool bytes_pay(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, std::int64_t k,
               const FilterScale& bytes, const FilterForm& wider) {
  if (k == 0 || points.size() < 2 ||
      (queries != nullptr && queries->size() == 0))
    return false;
  const double n = static_cast<double>(points.size());
  const double d = static_cast<double>(points.padded);
  const double pairs = queries != nullptr ? n : 0.5 * n;  // of a row
  const double saved = pairs * d * saved_a_feature(wider.product, kernels);
  // Pairs of a row that pass in 16 bits, with seeds (Search::sample_of()).
  const double passed =
      static_cast<double>(k) *
      (1.0 + std::log1p(n / (200.0 * static_cast<double>(k))));
  const double exact = passed * (kExactPair + kExactFeature * d);
  // No data of more than a few features pass so few more.
  if (saved < 0.1 * exact) return false;
  return exact *
             (times_in_bytes(metric, rule, kernels, points, queries, k, bytes) -
              1.0) <
         saved;
}

}  // namespace cpu
}  // namespace fsknn
