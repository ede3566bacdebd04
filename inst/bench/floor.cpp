// What the package's times are compared with, measured in R's own process:
// OpenBLAS's single-precision product, and the rate of the fewest vector
// instructions that an elementwise distance needs. Compiled by harness.R
// with R CMD SHLIB; no part of the package.

#include <dlfcn.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#define R_NO_REMAP
#include <Rinternals.h>

namespace {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// R links its BLAS, so what is sought is in the process already. A BLAS without
// these is not OpenBLAS.
template <class Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

using Sgemm = void(const char*, const char*, const int*, const int*, const int*,
                   const float*, const float*, const int*, const float*,
                   const int*, const float*, float*, const int*);

// The rows in single precision, a point after the other: [features x points]
// in column-major order, and the buffer that a product goes to.
struct Floor {
  int num_points = 0, num_features = 0;
  std::vector<float> points;
  std::vector<float> tile;
};
Floor floor_data;

}  // namespace

extern "C" {

// c(core, configuration), or NULL where R's BLAS is not OpenBLAS.
SEXP bench_openblas() {
  auto core = find_symbol<char*()>("openblas_get_corename");
  auto configuration = find_symbol<char*()>("openblas_get_config");
  if (core == nullptr || configuration == nullptr ||
      find_symbol<Sgemm>("sgemm_") == nullptr)
    return R_NilValue;
  SEXP out = PROTECT(Rf_allocVector(STRSXP, 2));
  SET_STRING_ELT(out, 0, Rf_mkChar(core()));
  SET_STRING_ELT(out, 1, Rf_mkChar(configuration()));
  UNPROTECT(1);
  return out;
}

SEXP bench_blas_threads(SEXP threads) {
  auto set = find_symbol<void(int)>("openblas_set_num_threads");
  if (set == nullptr) Rf_error("R's BLAS is not OpenBLAS.");
  set(Rf_asInteger(threads));
  return R_NilValue;
}

// x: a double matrix, points in rows. max_rows: of the highest tile.
SEXP bench_floor_load(SEXP x, SEXP max_rows) {
  const int n = Rf_nrows(x), d = Rf_ncols(x);
  const std::size_t rows = static_cast<std::size_t>(n);
  floor_data.num_points = n;
  floor_data.num_features = d;
  floor_data.points.resize(rows * d);
  for (int f = 0; f < d; ++f)
    for (std::size_t i = 0; i < rows; ++i)
      floor_data.points[i * d + f] = static_cast<float>(REAL(x)[rows * f + i]);
  floor_data.tile.assign(rows * std::min(n, Rf_asInteger(max_rows)), 0.0f);
  return R_NilValue;
}

SEXP bench_floor_unload() {
  floor_data = Floor();
  return R_NilValue;
}

// Seconds for all pairs, twice each (that is all n^2 products of rows, halved
// by the reader): tiles of tile_rows points against all points, one after the
// other into the same buffer. Of the tiles only each stride-th is done, and the
// time is scaled to all.
SEXP bench_floor_pass(SEXP tile_rows, SEXP stride) {
  Sgemm* sgemm = find_symbol<Sgemm>("sgemm_");
  const int n = floor_data.num_points, d = floor_data.num_features;
  const int step = Rf_asInteger(tile_rows), every = Rf_asInteger(stride);
  const float one = 1.0f, zero = 0.0f;
  const float* points = floor_data.points.data();
  double rows_done = 0.0;
  const double start = seconds_now();
  for (int first = 0; first < n; first += step * every) {
    const int rows = std::min(step, n - first);
    sgemm("T", "N", &n, &rows, &d, &one, points, &d,
          points + static_cast<std::size_t>(first) * d, &d, &zero,
          floor_data.tile.data(), &n);
    rows_done += rows;
  }
  return Rf_ScalarReal((seconds_now() - start) * n / rows_done);
}

}  // extern "C"

// --- The vector arithmetic limit ---------------------------------------------
//
// One element is one feature of one pair. Summed over the features,
//   min(a, b)  is two vector instructions (minimum, add), and gives both
//              sum |a - b| = sum a + sum b - 2 sum min(a, b) and the
//              proportional distance;
//   |a - b|    is three (subtract, clear the sign, add).
// The loops do nothing else: the sums stay in registers, the points in the
// first-level cache, and loads go with the arithmetic.

namespace {

constexpr int kDepth = 64;

#define BENCH_LOOP(name, isa, Vector, lanes, rows, vectors, set1, load, store, \
                   accumulate)                                                 \
  __attribute__((target(isa))) void name(const float* a, const float* b,       \
                                         int repeats, float* out) {            \
    Vector sum[rows][vectors];                                                 \
    for (int r = 0; r < rows; ++r)                                             \
      for (int v = 0; v < vectors; ++v) sum[r][v] = set1(0.0f);                \
    for (int repeat = 0; repeat < repeats; ++repeat) {                         \
      for (int f = 0; f < kDepth; ++f) {                                       \
        Vector y[vectors];                                                     \
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; ++v)              \
            y[v] = load(b + (f * vectors + v) * lanes);                        \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; ++r) {               \
          const Vector x = set1(a[f * rows + r]);                              \
          _Pragma("GCC unroll 8") for (int v = 0; v < vectors; ++v)            \
              sum[r][v] = accumulate(sum[r][v], x, y[v]);                      \
        }                                                                      \
      }                                                                        \
    }                                                                          \
    for (int r = 0; r < rows; ++r)                                             \
      for (int v = 0; v < vectors; ++v)                                        \
        store(out + (r * vectors + v) * lanes, sum[r][v]);                     \
  }

#define SMALLER_512(s, x, y) _mm512_add_ps(s, _mm512_min_ps(x, y))
#define APART_512(s, x, y) _mm512_add_ps(s, _mm512_abs_ps(_mm512_sub_ps(x, y)))
#define SMALLER_256(s, x, y) _mm256_add_ps(s, _mm256_min_ps(x, y))
#define APART_256(s, x, y)                                    \
  _mm256_add_ps(s, _mm256_andnot_ps(_mm256_set1_ps(-0.0f),    \
                                    _mm256_sub_ps(x, y)))
#define SMALLER_128(s, x, y) _mm_add_ps(s, _mm_min_ps(x, y))
#define APART_128(s, x, y) \
  _mm_add_ps(s, _mm_andnot_ps(_mm_set1_ps(-0.0f), _mm_sub_ps(x, y)))

BENCH_LOOP(smaller_512, "avx512f", __m512, 16, 8, 3, _mm512_set1_ps,
           _mm512_loadu_ps, _mm512_storeu_ps, SMALLER_512)
BENCH_LOOP(apart_512, "avx512f", __m512, 16, 8, 3, _mm512_set1_ps,
           _mm512_loadu_ps, _mm512_storeu_ps, APART_512)
BENCH_LOOP(smaller_256, "avx", __m256, 8, 5, 2, _mm256_set1_ps,
           _mm256_loadu_ps, _mm256_storeu_ps, SMALLER_256)
BENCH_LOOP(apart_256, "avx", __m256, 8, 5, 2, _mm256_set1_ps,
           _mm256_loadu_ps, _mm256_storeu_ps, APART_256)
BENCH_LOOP(smaller_128, "sse2", __m128, 4, 5, 2, _mm_set1_ps, _mm_loadu_ps,
           _mm_storeu_ps, SMALLER_128)
BENCH_LOOP(apart_128, "sse2", __m128, 4, 5, 2, _mm_set1_ps, _mm_loadu_ps,
           _mm_storeu_ps, APART_128)

struct Loop {
  const char* name;
  void (*smaller)(const float*, const float*, int, float*);
  void (*apart)(const float*, const float*, int, float*);
  int pairs;  // that one run adds to, of kDepth features each
};

Loop widest_loop() {
  if (__builtin_cpu_supports("avx512f"))
    return {"AVX-512", smaller_512, apart_512, 8 * 3 * 16};
  if (__builtin_cpu_supports("avx"))
    return {"AVX", smaller_256, apart_256, 5 * 2 * 8};
  return {"SSE2", smaller_128, apart_128, 5 * 2 * 4};
}

}  // namespace

extern "C" {

SEXP bench_vector_name() { return Rf_mkString(widest_loop().name); }

// Elements a second on so many threads, all together. three: the loop of three
// instructions, not that of two.
SEXP bench_vector_rate(SEXP threads, SEXP three) {
  const Loop loop = widest_loop();
  const auto run = Rf_asLogical(three) ? loop.apart : loop.smaller;
  const int num_threads = Rf_asInteger(threads);
  constexpr int kRepeats = 10000;
  volatile float kept = 0.0f;
  double elements = 0.0;
  const double start = seconds_now();
#pragma omp parallel num_threads(num_threads) reduction(+ : elements)
  {
    std::vector<float> a(kDepth * 8), b(kDepth * 48), out(8 * 48);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.001f * (i % 97);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 0.001f * (i % 89);
    run(a.data(), b.data(), kRepeats, out.data());
    kept = out[0];
    elements += static_cast<double>(loop.pairs) * kDepth * kRepeats;
  }
  (void)kept;
  return Rf_ScalarReal(elements / (seconds_now() - start));
}

}  // extern "C"
