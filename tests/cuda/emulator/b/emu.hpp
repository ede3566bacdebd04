// A GPU on the host, to try kernels: threads of a block are fibers.
#pragma once
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <cstring>
#include <cstdint>
#include <cstdio>
#include <cmath>
#include <functional>
#include <type_traits>
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __global__
#define __global__
#undef __device__
#define __device__
#undef __host__
#define __host__
#undef __shared__
#define __shared__ static
#undef __align__
#define __align__(n) __attribute__((aligned(n)))
namespace emu {
struct Idx { unsigned x, y, z; };
extern Idx thread_idx, block_idx, block_dim, grid_dim;
extern unsigned char* dynamic_shared;
// A collective of the lanes in mask: gives all lanes' values.
const unsigned long long* exchange(unsigned mask, unsigned long long own, unsigned* there = nullptr);
void sync_block();
void launch(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream, const std::function<void()>& body);
inline void launch(dim3 grid, dim3 block, const std::function<void()>& body) { launch(grid, block, 0, nullptr, body); }
struct Config { dim3 grid, block; std::size_t shared; cudaStream_t stream;
  template <class G, class B> Config(G g, B b, std::size_t s = 0, cudaStream_t st = nullptr) : grid(g), block(b), shared(s), stream(st) {} };
inline int lane() { return static_cast<int>((thread_idx.x + block_dim.x * (thread_idx.y + block_dim.y * thread_idx.z)) % 32); }
template <class T> unsigned long long pack(T v) { unsigned long long u = 0; static_assert(sizeof(T) <= 8, ""); std::memcpy(&u, &v, sizeof v); return u; }
template <class T> T unpack(unsigned long long u) { T v; std::memcpy(&v, &u, sizeof v); return v; }
template <class T> T shfl(unsigned mask, T v, int source) { return unpack<T>(exchange(mask, pack(v))[source & 31]); }
}
static emu::Idx& threadIdx = emu::thread_idx;
static emu::Idx& blockIdx = emu::block_idx;
static emu::Idx& blockDim = emu::block_dim;
static emu::Idx& gridDim = emu::grid_dim;
template <class R, class... A> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, R (*f)(A...)) { return cudaFuncGetAttributes(a, reinterpret_cast<const void*>(f)); }
template <class R, class... A> cudaError_t cudaFuncSetAttribute(R (*f)(A...), cudaFuncAttribute a, int v) { return cudaFuncSetAttribute(reinterpret_cast<const void*>(f), a, v); }
inline float __int_as_float(int x) { float f; std::memcpy(&f, &x, 4); return f; }
inline void __syncthreads() { emu::sync_block(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emu::exchange(mask, 0); }
template <class T> T __shfl_sync(unsigned mask, T v, int src, int width = 32) {
  const int l = emu::lane(); return emu::shfl(mask, v, l / width * width + (src & (width - 1))); }
template <class T> T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32) { (void)width; return emu::shfl(mask, v, emu::lane() ^ x); }
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32) {
  const int l = emu::lane(), base = l / width * width; const int s = l - static_cast<int>(d); return emu::shfl(mask, v, s < base ? l : s); }
inline unsigned __ballot_sync(unsigned mask, bool p) {
  unsigned there = 0; const unsigned long long* v = emu::exchange(mask, p, &there); unsigned b = 0;
  for (int i = 0; i < 32; ++i) if ((mask >> i & 1) && (there >> i & 1) && v[i]) b |= 1u << i; return b; }
inline bool __any_sync(unsigned mask, bool p) { return __ballot_sync(mask, p) != 0; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T> T __ldg(const T* p) { return *p; }
inline double __longlong_as_double(long long x) { return emu::unpack<double>(static_cast<unsigned long long>(x)); }
inline long long __double_as_longlong(double x) { return static_cast<long long>(emu::pack(x)); }
inline float __fdividef(float a, float b) { return a / b; }
#include <cfenv>
inline double __emu_round(int how, double a, double b, bool minus) { const int old = std::fegetround(); std::fesetround(how); volatile double x = a, y = b; volatile double z = minus ? x - y : x + y; std::fesetround(old); return z; }
inline double __dadd_ru(double a, double b) { return __emu_round(FE_UPWARD, a, b, false); }
inline double __dsub_rd(double a, double b) { return __emu_round(FE_DOWNWARD, a, b, true); }
template <class T, class U> T atomicAdd(T* p, U v) { const T old = *p; *p = old + static_cast<T>(v); return old; }
template <class T> T atomicMax(T* p, T v) { const T old = *p; if (v > old) *p = v; return old; }
template <class T> T atomicMin(T* p, T v) { const T old = *p; if (v < old) *p = v; return old; }
template <class A, class B> std::common_type_t<A, B> min(A a, B b) { using C = std::common_type_t<A, B>; return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a); }
template <class A, class B> std::common_type_t<A, B> max(A a, B b) { using C = std::common_type_t<A, B>; return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a); }
inline float __double2float_rd(double x) { const float y = static_cast<float>(x); return static_cast<double>(y) > x ? nextafterf(y, -HUGE_VALF) : y; }
inline float __double2float_ru(double x) { const float y = static_cast<float>(x); return static_cast<double>(y) < x ? nextafterf(y, HUGE_VALF) : y; }
