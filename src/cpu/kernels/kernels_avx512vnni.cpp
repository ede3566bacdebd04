// AVX-512 with VNNI.
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace avx512vnni {

#include "cpu/kernels/kernels_vnni.hpp"

#include "cpu/kernels/kernels_half_bytes.hpp"

#include "cpu/kernels/kernels_avx512.hpp"
#include "cpu/kernels/kernels_body.hpp"

}  // namespace avx512vnni

const Kernels kAvx512VnniKernels = {"avx512vnni",
                                    &prepare_row<avx512vnni::Lanes>,
                                    &avx512vnni::exact,
                                    &avx512vnni::differences,
                                    &avx512vnni::accumulate_products,
                                    &avx512vnni::test_sums,
                                    &avx512vnni::lower_best,
                                    &avx512vnni::near_boxes,
                                    &avx512vnni::masked_pairs,
                                    &avx512vnni::masked_test,
                                    &avx512vnni::masked_distance_test,
                                    &avx512vnni::masked_sums,
                                    &avx512vnni::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
