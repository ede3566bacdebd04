// Clang needs sugar for a template of this header.
#undef RCPP_NO_SUGAR
#include <RcppArmadillo.h>

#include "bind_common.hpp"
#include "core/base/poll.hpp"

using namespace fsknn;

namespace {

/// The distances between all points, at least 1e-9.
arma::mat distances(const arma::mat& at) {
  arma::mat apart(at.n_rows, at.n_rows);
  for (arma::uword i = 0; i < at.n_rows; ++i) {
    apart.col(i) =
        arma::sqrt(arma::sum(arma::square(at.each_row() - at.row(i)), 1));
    poll_after(10.0 * static_cast<double>(at.n_rows));
  }
  return arma::clamp(apart, 1e-9, arma::datum::inf);
}

/// Rotates the layout so that its longest extent is the first axis. Flips each
/// axis so that the first point has a nonnegative coordinate.
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

// Stress majorization (Gansner et al. 2005). steps: the desired distances
// between points; start: [points x 2].
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
      // Moves each point to the weighted mean of the positions that the others
      // prefer.
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
