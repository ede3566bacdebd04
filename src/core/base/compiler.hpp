#pragma once

// Function attributes for g++, clang and nvcc.

#ifdef __CUDACC__
#define FSKNN_HD __host__ __device__
#else
#define FSKNN_HD
#endif

// Members that are compiled for every instruction set. They are always inlined,
// so that no copy for one processor is linked for another.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define FSKNN_INLINE inline __attribute__((always_inline))
#else
#define FSKNN_INLINE inline
#endif

// Rarely called functions, kept out of the loops that call them.
#if defined(__CUDACC__)
#define FSKNN_RARE __noinline__
#elif defined(__GNUC__)
#define FSKNN_RARE __attribute__((noinline, cold))
#else
#define FSKNN_RARE
#endif
