// FAISS in R's own process, through its C++ functions, for cpu.R and cells.R.
// Compiled with R CMD SHLIB where its library is there (Debian: libfaiss-dev);
// no part of the package.

#include <faiss/AutoTune.h>
#include <faiss/Index.h>
#include <faiss/index_factory.h>
#include <faiss/utils/distances.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
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

/// x: a matrix of doubles, points in rows.
Points points_from(SEXP x) {
  Points p;
  p.count = static_cast<std::size_t>(Rf_nrows(x));
  p.features = static_cast<std::size_t>(Rf_ncols(x));
  p.rows.resize(p.count * p.features);
  for (std::size_t f = 0; f < p.features; ++f)
    for (std::size_t i = 0; i < p.count; ++i)
      p.rows[i * p.features + f] =
          static_cast<float>(REAL(x)[p.count * f + i]);
  return p;
}

/// Sets the threads of FAISS while it exists.
class OmpThreads {
 public:
  explicit OmpThreads(int count) : before_(omp_get_max_threads()) {
    omp_set_num_threads(count);
  }
  ~OmpThreads() { omp_set_num_threads(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  const int before_;
};

void free_index(SEXP index) {
  delete static_cast<faiss::Index*>(R_ExternalPtrAddr(index));
  R_ClearExternalPtr(index);
}

/// Calls `work` and makes an R error of what it throws.
template <class Work>
SEXP guarded(Work work) {
  char message[512];
  try {
    return work();
  } catch (const std::exception& e) {
    std::snprintf(message, sizeof message, "%s", e.what());
  }
  Rf_error("FAISS: %s", message);
}

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
  points = points_from(x);
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
    const OmpThreads held(num_threads);
    search(0, points.count, k, by_product, distance.data(), index.data());
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

// An index of these points by squared Euclidean distances. factory: its
// description ("HNSW32"); settings: of its search ("efSearch=50").
SEXP bench_faiss_build(SEXP x, SEXP factory, SEXP settings, SEXP threads) {
  SEXP out = PROTECT(R_MakeExternalPtr(nullptr, R_NilValue, R_NilValue));
  R_RegisterCFinalizer(out, free_index);
  guarded([&] {
    const OmpThreads held(Rf_asInteger(threads));
    const Points rows = points_from(x);
    std::unique_ptr<faiss::Index> index(
        faiss::index_factory(static_cast<int>(rows.features),
                             CHAR(STRING_ELT(factory, 0)), faiss::METRIC_L2));
    const std::int64_t count = static_cast<std::int64_t>(rows.count);
    index->train(count, rows.rows.data());
    index->add(count, rows.rows.data());
    faiss::ParameterSpace().set_index_parameters(
        index.get(), CHAR(STRING_ELT(settings, 0)));
    R_SetExternalPtrAddr(out, index.release());
    return R_NilValue;
  });
  UNPROTECT(1);
  return out;
}

// The nearest of each point of x: list(idx, dist), [points x k], from 1, the
// point itself included; 0 where the index found fewer.
SEXP bench_faiss_find(SEXP index, SEXP x, SEXP num_nearest, SEXP threads) {
  const int k = Rf_asInteger(num_nearest), n = Rf_nrows(x);
  const char* names[] = {"idx", "dist", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocMatrix(INTSXP, n, k));
  SET_VECTOR_ELT(out, 1, Rf_allocMatrix(REALSXP, n, k));
  int* const number = INTEGER(VECTOR_ELT(out, 0));
  double* const distance = REAL(VECTOR_ELT(out, 1));
  guarded([&] {
    const OmpThreads held(Rf_asInteger(threads));
    const Points rows = points_from(x);
    std::vector<float> square(rows.count * static_cast<std::size_t>(k));
    std::vector<std::int64_t> found(square.size());
    static_cast<faiss::Index*>(R_ExternalPtrAddr(index))
        ->search(n, rows.rows.data(), k, square.data(), found.data());
    for (std::size_t i = 0; i < rows.count; ++i)
      for (std::size_t r = 0; r < static_cast<std::size_t>(k); ++r) {
        const std::size_t from = i * static_cast<std::size_t>(k) + r;
        const std::size_t to = r * rows.count + i;
        number[to] = static_cast<int>(found[from]) + 1;
        distance[to] = std::sqrt(std::max(0.0, static_cast<double>(square[from])));
      }
    return R_NilValue;
  });
  UNPROTECT(1);
  return out;
}

}  // extern "C"
