#include "bind_common.hpp"
#include "core/brute.hpp"
#include "core/errors.hpp"
#include "cpu/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

struct Allocation {
  SEXPTYPE type;
  R_xlen_t length;
};

SEXP allocate(void* what) {
  const Allocation* a = static_cast<const Allocation*>(what);
  return Rf_allocVector(a->type, a->length);
}

SEXP no_memory(SEXP, void*) { return R_NilValue; }

/// A matrix of any size that R can hold: rows * columns may pass 2^31. R's own
/// error is caught, so that the failure is one of ours.
SEXP new_matrix(SEXPTYPE type, std::int64_t rows, std::int64_t columns) {
  Allocation what = {type, static_cast<R_xlen_t>(rows * columns)};
  Rcpp::Shield<SEXP> m(R_tryCatchError(allocate, &what, no_memory, nullptr));
  if (m == R_NilValue)
    throw MemoryFailure(static_cast<double>(what.length) *
                        (type == INTSXP ? 4 : 8));
  Rf_setAttrib(m, R_DimSymbol,
               Rcpp::IntegerVector::create(static_cast<int>(rows),
                                           static_cast<int>(columns)));
  return m;
}

/// The matrices of the answer, and the core's view of them.
struct Answer {
  Answer(std::int64_t rows, std::int64_t k, bool with_correlation)
      : index(new_matrix(INTSXP, rows, k)),
        distance(new_matrix(REALSXP, rows, k)) {
    view.rows = rows;
    view.index = INTEGER(index);
    view.distance = REAL(distance);
    view.missing_index = NA_INTEGER;
    view.missing_value = NA_REAL;
    if (with_correlation) {
      correlation = new_matrix(REALSXP, rows, k);
      view.correlation = REAL(correlation);
    }
  }
  Rcpp::RObject index, distance, correlation;
  Neighbours view;

  Rcpp::List list(const Rcpp::List& stats) const {
    return Rcpp::List::create(
        Rcpp::_["index"] = index, Rcpp::_["distance"] = distance,
        Rcpp::_["correlation"] = correlation, Rcpp::_["stats"] = stats);
  }
};

struct Question {
  Question(SEXP x, SEXP query, const Rcpp::List& list)
      : points(bind::row_source(x)),
        queries(Rf_isNull(query) ? nullptr : bind::row_source(query)),
        request(bind::request_from(list)),
        answer((queries != nullptr ? *queries : *points).num_points(),
               request.k, Rcpp::as<bool>(list["correlation"])) {}
  std::unique_ptr<RowSource> points, queries;
  Request request;
  Answer answer;
};

}  // namespace

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_find_knn(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&] {
    Question q(x, query, request);
    const std::unique_ptr<Progress> progress =
        bind::r_progress(Rcpp::as<bool>(request["progress"]));
    Stats stats;
    const bool on_gpu = Rcpp::as<std::string>(request["backend"]) == "cuda";
    (on_gpu ? cuda::find_neighbours : cpu::find_neighbours)(
        q.request, *q.points, q.queries.get(), q.answer.view, progress.get(),
        &stats);
    return q.answer.list(bind::list_of(stats));
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_brute_force(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&] {
    Question q(x, query, request);
    brute_force(q.request, *q.points, q.queries.get(), q.answer.view);
    return q.answer.list(Rcpp::List());
  });
}
