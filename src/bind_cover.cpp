#include "bind_common.hpp"
#include "core/cover/cover.hpp"

using namespace fsknn;

namespace {

Rcpp::IntegerMatrix one_based(const std::vector<SamplePair>& pairs) {
  Rcpp::IntegerMatrix out(static_cast<int>(pairs.size()), 2);
  for (int p = 0; p < out.nrow(); ++p) {
    out(p, 0) = pairs[static_cast<std::size_t>(p)].first + 1;
    out(p, 1) = pairs[static_cast<std::size_t>(p)].second + 1;
  }
  return out;
}

}  // namespace

// levels: features in rows; classes: one per column. alpha and beta are
// feasible. target: a size that is small enough, or 0.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_search_cover(Rcpp::IntegerMatrix levels,
                            Rcpp::IntegerVector classes, int alpha, int beta,
                            int target, double seconds, int num_threads,
                            bool progress) {
  return bind::guarded([&] {
    CoverTask task;
    task.levels = levels.begin();
    task.num_features = levels.nrow();
    task.num_samples = levels.ncol();
    task.classes = classes.begin();
    task.alpha = alpha;
    task.beta = beta;
    task.target = target;
    task.seconds = seconds;
    task.num_threads = num_threads;
    const std::unique_ptr<Progress> told =
        bind::r_progress(progress, "Feature set");
    const CoverAnswer answer = search_cover(task, told.get());
    return Rcpp::List::create(
        Rcpp::_["chosen"] = bind::one_based(answer.chosen),
        Rcpp::_["bound"] = answer.bound,
        Rcpp::_["lower_bound"] = answer.lower_bound,
        Rcpp::_["in_all"] = bind::one_based(answer.in_all),
        Rcpp::_["in_smaller"] = bind::one_based(answer.in_smaller),
        Rcpp::_["out_of_smaller"] = bind::one_based(answer.out_of_smaller),
        Rcpp::_["active"] = one_based(answer.active),
        Rcpp::_["out_of_time"] = answer.out_of_time,
        Rcpp::_["bytes"] = answer.bytes,
        Rcpp::_["pairs_left"] = answer.pairs_left,
        Rcpp::_["features_left"] = answer.features_left);
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_agreements(Rcpp::IntegerMatrix levels) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const std::vector<int> counts =
        count_agreements(levels.begin(), levels.nrow(), levels.ncol());
    return Rcpp::List::create(
        Rcpp::_["counts"] =
            Rcpp::IntegerMatrix(levels.ncol(), levels.ncol(), counts.begin()));
  });
}
