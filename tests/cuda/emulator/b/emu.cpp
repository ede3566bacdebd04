#include "emu.hpp"
#include <cuda.h>
#include <cstdlib>
#include <mutex>
#include <vector>
#include <sys/mman.h>
#include <exception>
namespace emu {
Idx thread_idx, block_idx, block_dim, grid_dim;
unsigned char* dynamic_shared = nullptr;
namespace {
std::mutex one_launch;
struct Fiber { void* sp; unsigned char* stack; int state; unsigned mask; unsigned long long turn; Idx idx; };
enum { ready, waits_warp, waits_block, done };
constexpr std::size_t kStack = 256 << 10;
std::vector<Fiber> fibers; void* main_sp; int now; int count;
const std::function<void()>* body;
struct Warp { unsigned long long values[2][32]; unsigned there[2]; };
std::vector<Warp> warps;
extern "C" void emu_switch(void** from, void* to);
asm(R"(
.text
.globl emu_switch
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
void leave(int state) { Fiber& f = fibers[now]; f.state = state; emu_switch(&f.sp, main_sp); }
extern "C" void emu_entry() { (*body)(); leave(done); std::abort(); }
void start(int i) {
  Fiber& f = fibers[i];
  if (!f.stack) f.stack = static_cast<unsigned char*>(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  void** sp = reinterpret_cast<void**>(f.stack + kStack - 64);
  *--sp = nullptr; // alignment
  *--sp = reinterpret_cast<void*>(&emu_entry);
  for (int r = 0; r < 6; ++r) *--sp = nullptr;
  f.sp = sp; f.state = ready; f.turn = 0;
}
void resume(int i) { now = i; thread_idx = fibers[i].idx; emu_switch(&main_sp, fibers[i].sp); }
void run_block() {
  for (;;) {
    bool all_done = true, progress = false;
    const int nw = (count + 31) / 32;
    for (int w = 0; w < nw; ++w) {
      const int first = w * 32, end = std::min(count, first + 32);
      for (;;) {
        bool ran = false;
        for (int i = first; i < end; ++i) if (fibers[i].state == ready) { resume(i); ran = true; progress = true; }
        // lanes whose mask is complete
        bool freed = false;
        for (int i = first; i < end; ++i) if (fibers[i].state == waits_warp) {
          const unsigned m = fibers[i].mask; bool complete = true;
          for (int j = first; j < end; ++j) if (m >> (j - first) & 1)
            if (!(fibers[j].state == done || (fibers[j].state == waits_warp && fibers[j].mask == m))) complete = false;
          if (complete) { for (int j = first; j < end; ++j) if ((m >> (j - first) & 1) && fibers[j].state == waits_warp) fibers[j].state = ready; freed = true; progress = true; }
        }
        if (!freed) { if (!ran) break; }
      }
      for (int i = first; i < end; ++i) if (fibers[i].state != done) all_done = false;
    }
    if (all_done) return;
    bool all_wait = true;
    for (int i = 0; i < count; ++i) if (fibers[i].state != done && fibers[i].state != waits_block) all_wait = false;
    if (all_wait) { for (int i = 0; i < count; ++i) if (fibers[i].state == waits_block) fibers[i].state = ready; continue; }
    if (!progress) { std::fprintf(stderr, "emu: a block is stuck\n"); std::abort(); }
  }
}
}
const unsigned long long* exchange(unsigned mask, unsigned long long own, unsigned* there) {
  Fiber& f = fibers[now]; const int w = now / 32, l = now % 32; const int parity = f.turn++ & 1;
  Warp& warp = warps[w];
  warp.values[parity][l] = own;
  f.mask = mask;
  leave(waits_warp);
  if (there) { unsigned t = 0; for (int j = 0; j < 32 && w * 32 + j < count; ++j) if (fibers[w * 32 + j].state != done) t |= 1u << j; *there = t; }
  return warp.values[parity];
}
void sync_block() { leave(waits_block); }
void launch(dim3 grid, dim3 block, std::size_t shared, cudaStream_t, const std::function<void()>& b) {
  const std::lock_guard<std::mutex> hold(one_launch);
  count = static_cast<int>(block.x * block.y * block.z);
  if (count > 1024 || grid.x == 0 || grid.y == 0 || grid.y > 65535 || shared > 232448) { std::fprintf(stderr, "emu: a launch that cannot be\n"); std::abort(); }
  if (static_cast<int>(fibers.size()) < count) fibers.resize(count, Fiber{nullptr, nullptr, done, 0, 0, {}});
  warps.resize((count + 31) / 32);
  body = &b;
  block_dim = {block.x, block.y, block.z}; grid_dim = {grid.x, grid.y, grid.z};
  unsigned char* own = static_cast<unsigned char*>(std::aligned_alloc(1024, (shared + 1024) / 1024 * 1024));
  for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
    block_idx = {x, y, z}; dynamic_shared = own; std::memset(own, 0xcd, shared);
    for (int i = 0; i < count; ++i) { start(i); fibers[i].idx = {i % block.x, i / block.x % block.y, i / block.x / block.y}; }
    run_block();
  }
  std::free(own);
}
}
// --- the runtime
namespace { thread_local int device = 0; thread_local void* context = nullptr; int num_devices() { const char* n = std::getenv("EMU_GPUS"); return n ? std::atoi(n) : 1; } std::size_t used = 0; std::mutex m; }
extern "C" {
cudaError_t cudaGetDeviceCount(int* n) { *n = num_devices(); return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = device; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) { device = d; context = reinterpret_cast<void*>(static_cast<std::intptr_t>(d + 1)); return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "emulated"; }
cudaError_t cudaMalloc(void** p, size_t n) { *p = std::aligned_alloc(1024, (n + 1023) / 1024 * 1024); if (*p) std::memset(*p, 0xab, n); return *p ? cudaSuccess : cudaErrorMemoryAllocation; }
cudaError_t cudaFree(void* p) { std::free(p); return cudaSuccess; }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { *p = std::aligned_alloc(1024, (n + 1023) / 1024 * 1024); return cudaSuccess; }
cudaError_t cudaFreeHost(void* p) { std::free(p); return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t) { std::memmove(to, from, n); return cudaSuccess; }
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t) { std::memmove(to, from, n); return cudaSuccess; }
cudaError_t cudaMemcpy2DAsync(void* to, size_t dp, const void* from, size_t sp, size_t w, size_t h, cudaMemcpyKind, cudaStream_t) { for (size_t r = 0; r < h; ++r) std::memcpy(static_cast<char*>(to) + r * dp, static_cast<const char*>(from) + r * sp, w); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t) { std::memset(p, v, n); return cudaSuccess; }
cudaError_t cudaMemset(void* p, int v, size_t n) { std::memset(p, v, n); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = reinterpret_cast<cudaStream_t>(std::malloc(1)); return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { std::free(s); return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { *e = reinterpret_cast<cudaEvent_t>(std::malloc(1)); return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) { std::free(e); return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { *f = size_t{6} << 30; *t = size_t{8} << 30; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { *can = 1; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) { std::memset(p, 0, sizeof *p); std::strcpy(p->name, "emulated"); p->totalGlobalMem = size_t{8} << 30; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  switch (a) {
    case cudaDevAttrComputeCapabilityMajor: *v = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *v = 0; break;
    case cudaDevAttrMultiProcessorCount: *v = 6; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 232448; break;
    default: *v = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) { std::memset(a, 0, sizeof *a); a->maxThreadsPerBlock = 256; return cudaSuccess; }
static CUresult get_state(CUdevice, unsigned* f, int* a) { *f = 0; *a = 1; return CUDA_SUCCESS; }
static CUresult get_context(CUcontext* c) { *c = static_cast<CUcontext>(context); return CUDA_SUCCESS; }
static CUresult set_context(CUcontext c) { context = c; device = c ? static_cast<int>(reinterpret_cast<std::intptr_t>(c)) - 1 : 0; return CUDA_SUCCESS; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned, unsigned long long, cudaDriverEntryPointQueryResult* r) {
  *r = cudaDriverEntryPointSuccess; const std::string n = name;
  *f = n == "cuDevicePrimaryCtxGetState" ? reinterpret_cast<void*>(&get_state) : n == "cuCtxGetCurrent" ? reinterpret_cast<void*>(&get_context) : reinterpret_cast<void*>(&set_context);
  return cudaSuccess;
}
}
