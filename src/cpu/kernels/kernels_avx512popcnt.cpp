// AVX-512 with VNNI and VPOPCNTDQ: bits are counted in one instruction.
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vpopcntdq,fma")
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace avx512popcnt {

#include "cpu/kernels/kernels_vnni.hpp"

static inline __m512i add_bits(__m512i sum, __m512i x) {
  return _mm512_add_epi32(sum, _mm512_popcnt_epi32(x));
}

#include "cpu/kernels/kernels_avx512.hpp"
#include "cpu/kernels/kernels_body.hpp"

}  // namespace avx512popcnt

const Kernels kAvx512PopcntKernels = {"avx512popcnt",
                                      &prepare_row<avx512popcnt::Lanes>,
                                      &avx512popcnt::exact,
                                      &avx512popcnt::differences,
                                      &avx512popcnt::accumulate_products,
                                      &avx512popcnt::test_sums,
                                      &avx512popcnt::lower_best,
                                      &avx512popcnt::near_boxes,
                                      &avx512popcnt::masked_pairs,
                                      &avx512popcnt::masked_test,
                                      &avx512popcnt::masked_distance_test,
                                      &avx512popcnt::masked_sums,
                                      &avx512popcnt::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
