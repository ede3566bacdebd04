// All pairs within a distance: as lists, one entry per point, or as edges.

#include "bind_within.hpp"
#include "bind_held.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

/// backend: "cuda", "cpu", or "brute", the answer by definition.
void search(const std::string& backend, bind::Question& q, const Within& within,
            WithinAnswer& answer, Progress* progress, Stats& stats) {
  if (backend == "brute")
    return brute_within(q.request, within, *q.points, q.asked(), answer);
  const bool on_gpu = backend == "cuda";
  if (q.held != nullptr)
    return q.held->find_within(on_gpu, q.request, within, q.asked(), answer,
                               progress, &stats);
  (on_gpu ? cuda::find_within : cpu::find_within)(
      q.request, within, *q.points, q.asked(), answer, progress, &stats);
}

}  // namespace

// The request's `within`: limits, most, most_kept, similarity (NULL, or the
// least similarity of edges).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_within_search(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    bind::Question q(x, query, request);
    const Within within = bind::within_from(request);
    const bool as_edges = Rcpp::as<bool>(request["as_edges"]);
    bind::ListAnswer lists;
    bind::EdgeAnswer edges(q.request.metric->is_unit_dot(), q.subset.get());
    WithinAnswer& answer = as_edges ? static_cast<WithinAnswer&>(edges) : lists;
    Stats stats;
    try {
      search(Rcpp::as<std::string>(request["backend"]), q, within, answer,
             progress.get(), stats);
    } catch (const TooManyPairs& e) {
      return bind::failure_of(e);
    }
    const Rcpp::List least = request["within"];
    if (as_edges && !Rf_isNull(least["similarity"]))
      edges.keep_similar(q.request.metric->sign,
                         Rcpp::as<double>(least["similarity"]));
    Rcpp::List out = as_edges ? edges.list() : lists.list();
    out["stats"] = bind::list_of(stats);
    return out;
  });
}

// Returns an empty list, or a failure if a sample shows that far more pairs
// exist than fit.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_sample_pairs(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::Question q(x, query, request);
    try {
      check_sample(q.request, bind::within_from(request), *q.points, q.asked());
    } catch (const TooManyPairs& e) {
      return bind::failure_of(e);
    }
    return Rcpp::List();
  });
}

// Whether GPUs can find all pairs within a distance for this request.
// [[Rcpp::export(rng = false)]]
bool cpp_cuda_finds_within(Rcpp::List request) {
  return cuda::finds_within(bind::request_from(request));
}
