// AVX-512 (F, BW, DQ, VL).
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace avx512 {

static inline __m512i madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

/// Without VNNI no instruction multiplies bytes and sums without saturation. So
/// even and odd bytes are multiplied as 16 bits.
static inline __m512i even_bytes(__m512i x) {
  return _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8);
}
static inline __m512i odd_bytes(__m512i x) { return _mm512_srai_epi16(x, 8); }
static inline __m512i madd_bytes(__m512i sum, __m512i a, __m512i b) {
  const __m512i even = _mm512_madd_epi16(even_bytes(a), even_bytes(b));
  const __m512i odd = _mm512_madd_epi16(odd_bytes(a), odd_bytes(b));
  return _mm512_add_epi32(sum, _mm512_add_epi32(even, odd));
}
static inline __m512i first_of_bytes(__m512i) { return _mm512_setzero_si512(); }
static inline __m512i madd_counts(__m512i sum, __m512i a, __m512i b) {
  return madd(sum, _mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1));
}

#include "cpu/kernels/kernels_half_bytes.hpp"

#include "cpu/kernels/kernels_avx512.hpp"
#include "cpu/kernels/kernels_body.hpp"

}  // namespace avx512

const Kernels kAvx512Kernels = {"avx512",
                                &prepare_row<avx512::Lanes>,
                                &avx512::exact,
                                &avx512::differences,
                                &avx512::accumulate_products,
                                &avx512::test_sums,
                                &avx512::lower_best,
                                &avx512::near_boxes,
                                &avx512::masked_pairs,
                                &avx512::masked_test,
                                &avx512::masked_distance_test,
                                &avx512::masked_sums,
                                &avx512::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
