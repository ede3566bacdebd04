#include <RcppArmadillo.h>

#include "bind_common.hpp"
#include "core/base/poll.hpp"

using namespace fsknn;

namespace {

/// How far any two points are from each other, at the least 1e-9.
arma::mat distances(const arma::mat& at) {
  arma::mat apart(at.n_rows, at.n_rows);
  for (arma::uword i = 0; i < at.n_rows; ++i) {
    apart.col(i) =
        arma::sqrt(arma::sum(arma::square(at.each_row() - at.row(i)), 1));
    poll_after(10.0 * static_cast<double>(at.n_rows));
  }
  return arma::clamp(apart, 1e-9, arma::datum::inf);
}

/// Turned so that the longest way across is the first axis; of the two ways
/// round either axis, that which has the first point above and on the right.
arma::mat laid_flat(arma::mat at) {
  at.each_row() -= arma::mean(at, 0);
  arma::mat left, right;
  arma::vec lengths;
  if (!arma::svd_econ(left, lengths, right, at, "right"))
    throw Failure("a layout has no axes");
  at *= right;
  for (arma::uword axis = 0; axis < at.n_cols; ++axis)
    if (at(0, axis) < 0.0) at.col(axis) *= -1.0;
  return at;
}

}  // namespace

// Stress majorization (Gansner et al. 2005). steps: how far apart any two
// points belong; start: [points x 2].
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_stress_layout(Rcpp::NumericMatrix steps,
                             Rcpp::NumericMatrix start, int iterations) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const arma::mat wanted = Rcpp::as<arma::mat>(steps);
    arma::mat at = Rcpp::as<arma::mat>(start);
    arma::mat weight = 1.0 / arma::square(wanted);
    weight.diag().zeros();
    const arma::vec total = arma::sum(weight, 1);
    const arma::mat pull_at_one = weight % wanted;
    for (int i = 0; i < iterations; ++i) {
      const arma::mat pull = pull_at_one / distances(at);
      // Each point to the mean of where the others want it.
      arma::mat moved = weight * at - pull * at;
      moved += at.each_col() % arma::sum(pull, 1);
      moved.each_col() /= total;
      const bool done = arma::abs(moved - at).max() < 1e-4;
      at = std::move(moved);
      if (done) break;
    }
    return Rcpp::List::create(Rcpp::_["at"] = laid_flat(at));
  });
}
