#pragma once
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)
namespace emu {
struct Dim { unsigned x, y, z; };
extern Dim thread_idx, block_idx, block_dim, grid_dim;
extern char dynamic_shared[1 << 18];
void wait_block();
std::uint64_t exchange(std::uint64_t mine, int source_lane);  // read lane's
void exchange_all(std::uint64_t mine, std::uint64_t* all, bool* there);
int lane();
void run(Dim grid, Dim block, const std::function<void()>& kernel);
inline Dim dim(dim3 d) { return {d.x, d.y, d.z}; }
template <class A, class B, class F> void launch(F f, A grid, B block, std::size_t = 0, cudaStream_t = nullptr) { run(dim(dim3(grid)), dim(dim3(block)), f); }
template <class T> std::uint64_t pack(T x) { std::uint64_t u = 0; std::memcpy(&u, &x, sizeof x); return u; }
template <class T> T unpack(std::uint64_t u) { T x; std::memcpy(&x, &u, sizeof x); return x; }
}
#define threadIdx emu::thread_idx
#define blockIdx emu::block_idx
#define blockDim emu::block_dim
#define gridDim emu::grid_dim
inline void __syncthreads() { emu::wait_block(); }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __shfl_sync(unsigned, T v, int src, int width = 32) { return emu::unpack<T>(emu::exchange(emu::pack(v), (emu::lane() & ~(width - 1)) + src)); }
template <class T> T __shfl_xor_sync(unsigned, T v, int mask) { return emu::unpack<T>(emu::exchange(emu::pack(v), emu::lane() ^ mask)); }
template <class T> T __shfl_up_sync(unsigned, T v, int d) { const int l = emu::lane(); return emu::unpack<T>(emu::exchange(emu::pack(v), l >= d ? l - d : l)); }
inline unsigned __ballot_sync(unsigned, bool p) { std::uint64_t all[32]; bool there[32]; emu::exchange_all(p, all, there); unsigned m = 0; for (int i = 0; i < 32; ++i) if (there[i] && all[i]) m |= 1u << i; return m; }
inline bool __any_sync(unsigned m, bool p) { return __ballot_sync(m, p) != 0; }
inline void __syncwarp() { emu::exchange(0, emu::lane()); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T, class U> T atomicAdd(T* p, U v) { T b = *p; *p = b + static_cast<T>(v); return b; }
inline double __dadd_ru(double a, double b) { return std::nextafter(a + b, HUGE_VAL); }
inline float __double2float_ru(double x) { float y = static_cast<float>(x); return y < x ? std::nextafterf(y, HUGE_VALF) : y; }
inline double __longlong_as_double(unsigned long long x) { return emu::unpack<double>(x); }
inline float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }
template <class A, class B> std::common_type_t<A, B> min(A a, B b) { return a < b ? a : b; }
template <class A, class B> std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }

inline unsigned long long atomicMax(unsigned long long* p, unsigned long long v) { auto b = *p; if (v > b) *p = v; return b; }
inline long long __double_as_longlong(double x) { return static_cast<long long>(emu::pack(x)); }
