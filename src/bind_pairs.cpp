// Counts and sums over all pairs of points.

#include "bind_common.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

cpu::NetworkType network_type_of(const std::string& type) {
  if (type == "unsigned") return cpu::NetworkType::magnitude;
  if (type == "signed") return cpu::NetworkType::both_signs;
  return cpu::NetworkType::positive;
}

}  // namespace

// counts: below the breaks, in each bin, above. least, largest: over the pairs
// that were computed exactly, which are all with `extremes`.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_count_pairs(SEXP x, Rcpp::List request,
                           std::vector<double> breaks, bool similarity,
                           bool extremes) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const bind::Question q(x, R_NilValue, request);
    PairBins bins;
    bins.breaks = breaks;
    bins.similarity = similarity;
    bins.extremes = extremes;
    Stats stats;
    const bool on_gpu = Rcpp::as<std::string>(request["backend"]) == "cuda";
    const PairCounts counts = (on_gpu ? cuda::count_pairs : cpu::count_pairs)(
        q.request, bins, *q.points, progress.get(), &stats);
    return Rcpp::List::create(
        Rcpp::_["counts"] =
            Rcpp::NumericVector(counts.count.begin(), counts.count.end()),
        Rcpp::_["num_points"] = static_cast<double>(counts.num_points),
        Rcpp::_["least"] = counts.least, Rcpp::_["largest"] = counts.largest,
        Rcpp::_["stats"] = bind::list_of(stats));
  });
}

// Returns a column for each power.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_connectivities(SEXP x, Rcpp::List request, std::string type,
                              std::vector<double> powers) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const bind::Question q(x, R_NilValue, request);
    const std::int64_t n = q.points->num_points();
    Rcpp::NumericVector sums =
        bind::new_vector(REALSXP, n * static_cast<std::int64_t>(powers.size()));
    cpu::connectivities(q.request, network_type_of(type), powers, *q.points,
                        NA_REAL, sums.begin(), progress.get());
    sums.attr("dim") = Rcpp::IntegerVector::create(
        static_cast<int>(n), static_cast<int>(powers.size()));
    return Rcpp::List::create(Rcpp::_["connectivity"] = sums);
  });
}
