#pragma once

// Copies from global to shared memory. They are asynchronous from compute
// capability 8.0 on, else synchronous.

namespace fsknn {
namespace cuda {

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

__device__ inline void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to),
               "l"(from));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::);
}
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending));
}

#else

__device__ inline void copy_16_bytes(unsigned to, const void* from) {
  const uint4 x = *static_cast<const uint4*>(from);
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(x.x),
               "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
__device__ inline void commit_copies() {}
template <int pending>
__device__ inline void wait_for_copies() {}

#endif

}  // namespace cuda
}  // namespace fsknn
