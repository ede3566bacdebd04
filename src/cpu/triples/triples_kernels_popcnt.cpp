// Codes by AVX-512 with VPOPCNTDQ, which counts bits in one instruction.
#include "cpu/kernels/kernels_includes.hpp"
#include "cpu/triples/triples_kernels.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vpopcntdq")

namespace fsknn {
namespace cpu {
namespace {

constexpr int kPanel = TripleTile::panel;

__m512i word_of_all(const float* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof word);
  return _mm512_set1_epi32(word);
}

void accumulate_codes(const float* a, const float* b, std::int64_t steps,
                      bool add, float* sums) {
  __m512i s[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r] = _mm512_setzero_si512();
  for (std::int64_t f = 0; f < steps; ++f) {
    const __m512i y = _mm512_loadu_si512(b + f * kPanel);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
      s[r] = _mm512_add_epi32(s[r], _mm512_popcnt_epi32(_mm512_or_si512(
                                        word_of_all(a + f * kPanel + r), y)));
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    float* const to = sums + r * kPanel;
    __m512 sum = _mm512_cvtepi32_ps(s[r]);
    if (add) sum = _mm512_add_ps(sum, _mm512_loadu_ps(to));
    _mm512_storeu_ps(to, sum);
  }
}

void larger_codes(const float* row, const float* panel, std::int64_t steps,
                  float* out) {
  for (std::int64_t f = 0; f < steps; ++f)
    _mm512_storeu_si512(
        out + f * kPanel,
        _mm512_or_si512(word_of_all(row + f * kPanel),
                        _mm512_loadu_si512(panel + f * kPanel)));
}

}  // namespace

const CodeKernels kAvx512CodeKernels = {&accumulate_codes, &larger_codes};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
