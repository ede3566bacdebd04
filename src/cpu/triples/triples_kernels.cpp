// Kernels for any processor, and the choice of kernels.
#include "cpu/triples/triples_kernels.hpp"

#include "core/contract/arithmetic.hpp"

namespace fsknn {
namespace cpu {
namespace {

void accumulate(const float* a, const float* b, std::int64_t steps, bool add,
                float* sums) {
  constexpr int n = TripleTile::panel;
  float s[TripleTile::size] = {};
  for (std::int64_t f = 0; f < steps; ++f)
    for (int r = 0; r < TripleTile::rows; ++r) {
      const float x = a[f * n + r];
      for (int c = 0; c < n; ++c) {
        const float y = b[f * n + c];
        s[r * n + c] += x > y ? x : y;
      }
    }
  for (int i = 0; i < TripleTile::size; ++i)
    sums[i] = add ? sums[i] + s[i] : s[i];
}

void test(const float* sums, const float* rows, const float* columns,
          float share, std::uint32_t* keep) {
  constexpr int n = TripleTile::panel;
  for (int r = 0; r < TripleTile::rows; ++r) {
    keep[r] = 0;
    for (int c = 0; c < n; ++c)
      if (sums[r * n + c] <= share * (rows[r] + columns[c])) keep[r] |= 1u << c;
  }
}

void larger_panel(const float* row, const float* panel, std::int64_t steps,
                  float* out) {
  constexpr int n = TripleTile::panel;
  for (std::int64_t f = 0; f < steps; ++f)
    for (int c = 0; c < n; ++c) {
      const float x = row[f * n], y = panel[f * n + c];
      out[f * n + c] = x > y ? x : y;
    }
}

}  // namespace

const TripleKernels kBaselineTripleKernels = {
    &accumulate, &test, &larger_panel, &sum_of_largest<ScalarLanes>, nullptr};

const TripleKernels& triple_kernels(const Kernels& kernels) {
  if (&kernels == &kBaselineKernels) return kBaselineTripleKernels;
#if defined(FSKNN_X86_KERNELS)
  static const TripleKernels of_codes = {
      kAvx512CodeKernels.accumulate, kAvx2TripleKernels.test,
      kAvx512CodeKernels.larger, kAvx2TripleKernels.exact, nullptr};
  static const TripleKernels with_codes = {
      kAvx2TripleKernels.accumulate, kAvx2TripleKernels.test,
      kAvx2TripleKernels.larger, kAvx2TripleKernels.exact, &of_codes};
  return &kernels == &kAvx512PopcntKernels ? with_codes : kAvx2TripleKernels;
#elif defined(FSKNN_NEON_KERNELS)
  return kNeonTripleKernels;
#else
  return kBaselineTripleKernels;
#endif
}

}  // namespace cpu
}  // namespace fsknn
