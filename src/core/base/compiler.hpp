#pragma once

// What compilers are told of functions: g++, clang and nvcc.

#ifdef __CUDACC__
#define FSKNN_HD __host__ __device__
#else
#define FSKNN_HD
#endif

// Members that every instruction set compiles: inlined always, so that no copy
// made for one processor is linked for another.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define FSKNN_INLINE inline __attribute__((always_inline))
#else
#define FSKNN_INLINE inline
#endif

// What is seldom called: out of the way of the loops beside it.
#if defined(__CUDACC__)
#define FSKNN_RARE __noinline__
#elif defined(__GNUC__)
#define FSKNN_RARE __attribute__((noinline, cold))
#else
#define FSKNN_RARE
#endif
