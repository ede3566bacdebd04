// Neighbours of the same points in two groups of samples.

#include "bind_common.hpp"
#include "bind_held.hpp"
#include "core/search/contrast.hpp"
#include "cpu/search/pair_correlations.hpp"

using namespace fsknn;

namespace {

ListMatrix lists_of(const Rcpp::IntegerMatrix& index) {
  ListMatrix lists;
  lists.index = index.begin();
  lists.rows = index.nrow();
  lists.k = index.ncol();
  return lists;
}

GroupLists group_of(const Rcpp::List& group) {
  GroupLists out;
  out.lists = lists_of(Rcpp::as<Rcpp::IntegerMatrix>(group["index"]));
  out.r_own = REAL(group["own"]);
  out.r_other = REAL(group["other"]);
  return out;
}

Strength strength_of(const std::string& sign) {
  if (sign == "absolute") return Strength::absolute;
  return sign == "negative" ? Strength::negative : Strength::signed_r;
}

}  // namespace

// r of each point with each neighbour in its row of `index`, as a search
// returns it. Uses the request's features of `x` (data, or held points).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_pair_correlations(SEXP x, Rcpp::IntegerMatrix index,
                                 Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::Question q(x, R_NilValue, request);
    const cpu::ExactPoints exact(q.request, *q.points, progress.get());
    Rcpp::NumericMatrix r(Rcpp::no_init(index.nrow(), index.ncol()));
    cpu::pair_correlations(exact, lists_of(index), q.request.num_threads,
                           progress.get(), NA_REAL, r.begin());
    return Rcpp::List::create(Rcpp::_["correlation"] = r);
  });
}

// The variance of each point's mean of `towards` z over the lists of the point
// and of its neighbours, and of each pair's z: see cpu::list_variances(). r: of
// the pairs of `index`, as cpp_pair_correlations() returns it.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_list_variances(SEXP x, Rcpp::IntegerMatrix index,
                              Rcpp::NumericMatrix r,
                              Rcpp::NumericMatrix towards, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::Question q(x, R_NilValue, request);
    const cpu::ExactPoints exact(q.request, *q.points, progress.get());
    Rcpp::NumericVector variances(Rcpp::no_init(index.nrow()));
    Rcpp::NumericMatrix of_pairs(Rcpp::no_init(index.nrow(), index.ncol()));
    cpu::list_variances(exact, {lists_of(index), r.begin(), towards.begin()},
                        q.request.num_threads, progress.get(), of_pairs.begin(),
                        variances.begin());
    return Rcpp::List::create(Rcpp::_["variance"] = variances,
                              Rcpp::_["pairs"] = of_pairs);
  });
}

// first, second: lists of index, own and other: r in the group of the lists,
// and in the other one.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_contrast_points(Rcpp::List first, Rcpp::List second,
                               std::string sign, double persistence,
                               int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const GroupLists a = group_of(first), b = group_of(second);
    const R_xlen_t rows = a.lists.rows;
    Rcpp::IntegerVector shared(rows);
    Rcpp::NumericVector overlap(rows), mean_1(rows), mean_2(rows),
        largest(rows);
    PointContrasts out;
    out.missing = NA_INTEGER;
    out.shared = shared.begin();
    out.overlap = overlap.begin();
    out.mean_1 = mean_1.begin();
    out.mean_2 = mean_2.begin();
    out.largest = largest.begin();
    contrast_points(a, b, strength_of(sign), persistence, num_threads, out);
    return Rcpp::List::create(
        Rcpp::_["shared"] = shared, Rcpp::_["rbo"] = overlap,
        Rcpp::_["mean_1"] = mean_1, Rcpp::_["mean_2"] = mean_2,
        Rcpp::_["largest"] = largest);
  });
}
