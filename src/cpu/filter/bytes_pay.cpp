#include "cpu/filter/bytes_pay.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/search/passing_pairs.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sampled_pairs.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Costs in nanoseconds on an AMD EPYC of 2023 with AVX-512 VNNI; only their
// ratios matter. inst/bench/cpu.R compares both forms. No cost was measured for
// NEON: see kNeonInstruction.
constexpr double kExactPair = 50.0;
constexpr double kExactFeature = 0.3;
// A pair that passes in bytes, is collected and is tested in 16 bits
// (second_test.hpp), on an Intel Xeon with AVX-512 VNNI.
constexpr double kSecondTest = 15.0;
constexpr double kSecondTestFeature = 0.02;

bool is_avx2(const Kernels& kernels) {
#ifdef FSKNN_X86_KERNELS
  return &kernels == &kAvx2Kernels;
#else
  static_cast<void>(kernels);
  return false;
#endif
}

#ifdef FSKNN_NEON_KERNELS
/// The number of instructions in the kernels' inner loops for a feature of a
/// pair. The instructions that arrange columns are shared by 8 rows. They were
/// counted in kernels_neon*.cpp, because no such processor was available.
double neon_instructions(Product product, const Kernels& kernels) {
  switch (product) {
    case Product::dot: return 34.0 / 128.0;
    case Product::byte_dot:
#ifdef FSKNN_NEONI8MM_KERNELS
      if (&kernels == &kNeonI8mmKernels) return 24.0 / 512.0;
#endif
      static_cast<void>(kernels);
      return 16.0 / 256.0;
    case Product::byte_difference: return 2.0 / 16.0;
    case Product::smaller_sum: return 2.0 / 8.0;
    case Product::float_smaller_sum: return 2.0 / 4.0;
    default: return 0.0;
  }
}

/// Two instructions in each cycle at 3 GHz, as on the narrower of these
/// processors. The exact step waits for memory and is assumed to cost what it
/// costs elsewhere.
constexpr double kNeonInstruction = 1.0 / 6.0;
#endif

/// The time that 8 bits save for a feature of a pair in the filter. Differences
/// were measured with AVX2 on an AMD EPYC without AVX-512. With AVX-512 they
/// are scaled from products, which were measured, by the number of
/// instructions. On an Intel Xeon with AVX-512 VNNI no form chosen by these
/// costs took over 3% longer than the other (inst/bench/filters.R).
double saved_a_feature(Product wider, const Kernels& kernels) {
#ifdef FSKNN_NEON_KERNELS
  if (&kernels != &kBaselineKernels) {
    const Product bytes =
        wider == Product::dot ? Product::byte_dot : Product::byte_difference;
    return kNeonInstruction *
           std::max(0.0, neon_instructions(wider, kernels) -
                             neon_instructions(bytes, kernels));
  }
#endif
  switch (wider) {
    case Product::dot: return 0.0049;
    case Product::smaller_sum: return is_avx2(kernels) ? 0.014 : 0.0045;
    case Product::float_smaller_sum: return is_avx2(kernels) ? 0.035 : 0.013;
    default: return 0.0;  // no wider form exists
  }
}

/// A bound on the error of a row's bytes, in the filter's units, times w. Two
/// rows have (g_i + g_j) / (w_i + w_j).
struct ByteError {
  double g, w;
  double with(const ByteError& other) const {
    return (g + other.g) / (w + other.w);
  }
};

/// Packs one row and returns its error.
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
    if (scale.form->product == Product::byte_dot) {
      // Centred rows have different bounds for either sign, so that this takes
      // their mean.
      const double upper = static_cast<double>(as_float(row_.second_upper[0]));
      return {0.5 * (g + upper), 0.5};
    }
    return {g * scale.unit, 0.5};
  }

 private:
  RowPacker packer_;
  FilterRows row_;
};

/// Estimates, from some rows and columns, the factor by which more pairs pass
/// in 8 bits.
double times_in_bytes(const MetricEntry& metric, const DistanceRule& rule,
                      const Kernels& kernels, const PreparedPoints& points,
                      const PreparedPoints* queries, std::int64_t k,
                      const FilterScale& bytes) {
  const SampledPairs sample(metric, rule, kernels, points, queries, k);
  const PreparedPoints& of = queries != nullptr ? *queries : points;
  ByteBound bound_of(bytes, points.padded);
  std::vector<ByteError> bound;
  for (std::int64_t r = 0; r < sample.num_rows(); ++r)
    bound.push_back(
        bound_of(sample.row(r), of.sums[sample.place_of_row(r).value]));
  std::vector<std::vector<SeenPair>> seen(bound.size());
  ByteError own = {};
  sample.each(
      [&](Place at, const double* x) {
        own = bound_of(x, points.sums[at.value]);
      },
      [&](std::int64_t r, double distance) {
        const std::size_t i = static_cast<std::size_t>(r);
        seen[i].push_back(
            {compared(metric, rule, distance), own.with(bound[i])});
      });
  return times_as_many(seen, sample.nearest());
}

}  // namespace

bool subtracts_bytes(const Kernels& kernels) {
  return &kernels != &kBaselineKernels;
}

bool multiplies_bytes(const Kernels& kernels) {
#ifdef FSKNN_X86_KERNELS
  return &kernels == &kAvx512VnniKernels || &kernels == &kAvx512PopcntKernels;
#elif defined(FSKNN_NEONDOT_KERNELS)
  return &kernels != &kBaselineKernels && &kernels != &kNeonKernels;
#else
  static_cast<void>(kernels);
  return false;
#endif
}

bool bytes_pay(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, const FilterUse& use,
               const FilterScale& bytes, const FilterForm& wider) {
  const std::int64_t k = use.k;
  if (k == 0 || points.size() < 2 ||
      (queries != nullptr && queries->size() == 0))
    return false;
  const double n = static_cast<double>(points.size());
  const double d = static_cast<double>(points.padded);
  const double pairs = (queries != nullptr ? n : 0.5 * n) * use.share;
  const double saved = pairs * d * saved_a_feature(wider.product, kernels);
  // The number of a row's pairs that pass in 16 bits, with seeds
  // (Search::sample_of()).
  const double passed =
      static_cast<double>(k) *
      (1.0 + std::log1p(n / (200.0 * static_cast<double>(k))));
  const auto times = [&] {
    return times_in_bytes(metric, rule, kernels, points, queries, k, bytes);
  };
  // After the test in 16 bits about as many pairs reach the exact step as with
  // a filter in 16 bits.
  if (bytes.form->pack_words != nullptr) {
    const double looks = passed * (kSecondTest + kSecondTestFeature * d);
    return looks < saved && looks * times() < saved;
  }
  const double exact = passed * (kExactPair + kExactFeature * d);
  // Data of more than a few features never pass so few more pairs.
  if (saved < 0.1 * exact) return false;
  return exact * (times() - 1.0) < saved;
}

}  // namespace cpu
}  // namespace fsknn
