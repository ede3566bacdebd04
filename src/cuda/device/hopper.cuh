#pragma once

// Hopper's barriers in shared memory, bulk copies, and clusters of two blocks.

#include <cstdint>

namespace fsknn {
namespace cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

/// `barrier`: the shared address of 8 bytes.
__device__ inline void make_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}
__device__ inline void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
/// Arrives, and makes the barrier wait also for that many bytes of copies.
__device__ inline void expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}
/// Arrives at the barrier of that block of the cluster. This orders finished
/// reads and copies, but no writes of this thread. A release to the whole
/// cluster would wait for all its writes to global memory.
__device__ inline void arrive_at(unsigned barrier, unsigned block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}
/// Waits until the phase of that parity ends.
__device__ inline void wait_for_barrier(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// The same for a warp that is ahead of the others: between two polls it leaves
/// the processor to them.
__device__ inline void wait_ahead_for_barrier(unsigned barrier,
                                              unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "nanosleep.u32 64;\n"
      "bra AGAIN;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// Starts a copy that signals `barrier`.
__device__ inline void copy_bulk(unsigned to, const void* from, unsigned bytes,
                                 unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Copies to both blocks of the cluster, and signals the barriers of both.
__device__ inline void copy_bulk_to_both(unsigned to, const void* from,
                                         unsigned bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1], %2, [%3], %4;\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(static_cast<std::uint16_t>(3))
      : "memory");
}
template <int registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(registers));
}
template <int registers>
__device__ inline void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(registers));
}

#endif

}  // namespace cuda
}  // namespace fsknn
