// FAISS in R's own process, through its C++ functions, for cpu.R. Compiled with
// R CMD SHLIB where its library is there (Debian: libfaiss-dev); no part of the
// package.

#include <faiss/Index.h>
#include <faiss/utils/distances.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#define R_NO_REMAP
#include <Rinternals.h>

namespace {

// Rows in single precision, row-major, as FAISS takes them.
struct Points {
  std::size_t count = 0, features = 0;
  std::vector<float> rows;
};
Points points;

void search(std::size_t first, std::size_t last, std::size_t k, bool product,
            float* distance, std::int64_t* index) {
  const float* query = points.rows.data() + first * points.features;
  if (product)
    faiss::knn_inner_product(query, points.rows.data(), points.features,
                             last - first, points.count, k,
                             distance + first * k, index + first * k);
  else
    faiss::knn_L2sqr(query, points.rows.data(), points.features, last - first,
                     points.count, k, distance + first * k, index + first * k);
}

}  // namespace

extern "C" {

SEXP bench_faiss_version() {
  const int version[] = {FAISS_VERSION_MAJOR, FAISS_VERSION_MINOR,
                         FAISS_VERSION_PATCH};
  SEXP out = PROTECT(Rf_allocVector(INTSXP, 3));
  std::copy(version, version + 3, INTEGER(out));
  UNPROTECT(1);
  return out;
}

SEXP bench_faiss_load(SEXP x) {
  points.count = static_cast<std::size_t>(Rf_nrows(x));
  points.features = static_cast<std::size_t>(Rf_ncols(x));
  points.rows.resize(points.count * points.features);
  for (std::size_t f = 0; f < points.features; ++f)
    for (std::size_t i = 0; i < points.count; ++i)
      points.rows[i * points.features + f] =
          static_cast<float>(REAL(x)[points.count * f + i]);
  return R_NilValue;
}

SEXP bench_faiss_unload() {
  points = Points();
  return R_NilValue;
}

// way: c(split, query block, database block, use BLAS from so many queries,
// use a reservoir from k). With split the queries are dealt to so many threads,
// each in FAISS on its own; else FAISS deals them. The caller sets the threads
// of BLAS. Returns list(seconds, index [k + 1 x points], from 1, self included).
SEXP bench_faiss_search(SEXP k_plus_one, SEXP product, SEXP threads, SEXP way) {
  const std::size_t k = static_cast<std::size_t>(Rf_asInteger(k_plus_one));
  const bool by_product = Rf_asLogical(product);
  const int num_threads = Rf_asInteger(threads);
  const bool split = INTEGER(way)[0] != 0;
  faiss::distance_compute_blas_query_bs = INTEGER(way)[1];
  faiss::distance_compute_blas_database_bs = INTEGER(way)[2];
  faiss::distance_compute_blas_threshold = INTEGER(way)[3];
  faiss::distance_compute_min_k_reservoir = INTEGER(way)[4];
  std::vector<float> distance(points.count * k);
  std::vector<std::int64_t> index(points.count * k);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  if (split && num_threads > 1) {
    std::vector<std::thread> workers;
    for (int t = 0; t < num_threads; ++t)
      workers.emplace_back([&, t] {
        omp_set_num_threads(1);
        search(points.count * t / num_threads,
               points.count * (t + 1) / num_threads, k, by_product,
               distance.data(), index.data());
      });
    for (std::thread& worker : workers) worker.join();
  } else {
    const int before = omp_get_max_threads();
    omp_set_num_threads(num_threads);
    search(0, points.count, k, by_product, distance.data(), index.data());
    omp_set_num_threads(before);
  }
  const double seconds =
      std::chrono::duration<double>(Clock::now() - start).count();

  SEXP out = PROTECT(Rf_allocVector(VECSXP, 2));
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal(seconds));
  SEXP found = Rf_allocMatrix(INTSXP, static_cast<int>(k),
                              static_cast<int>(points.count));
  SET_VECTOR_ELT(out, 1, found);
  for (std::size_t i = 0; i < index.size(); ++i)
    INTEGER(found)[i] = static_cast<int>(index[i]) + 1;
  UNPROTECT(1);
  return out;
}

}  // extern "C"
