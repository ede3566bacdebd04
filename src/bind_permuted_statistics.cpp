// Studentized statistics of permuted outcomes.

#include "bind_common.hpp"
#include "core/search/permuted_statistics.hpp"

using namespace fsknn;

// The largest statistic of all rows for each outcome, and all statistics of
// some rows: [num_kept x outcomes]. place: the row of these that a row has
// (from 1), 0 if only the largest counts, or -1 if the row does not count.
// outcomes: from outcomes_for() in R. parts: from parts_of() in R. If they have
// no prior, there are only `moments`, from which it is made:
// [4 x parts x outcomes].
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_permuted_statistics(Rcpp::NumericMatrix rows,
                                   Rcpp::List outcomes, Rcpp::List parts,
                                   std::string sign, Rcpp::IntegerVector place,
                                   int num_kept, std::string form,
                                   int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const PointRows points = {rows.begin(), rows.nrow(), rows.ncol()};
    std::vector<int> at(place.begin(), place.end());
    for (int& one : at) --one;
    const auto values = [](Rcpp::List& from, const char* name) -> double* {
      return from.containsElementNamed(name) ? REAL(from[name]) : nullptr;
    };
    const bool has_levels = outcomes.containsElementNamed("levels");
    const Rcpp::RObject first = outcomes[has_levels ? "levels" : "columns"];
    const Rcpp::RObject freedom = parts["freedom"];
    VarianceParts variances;
    variances.num_parts = INTEGER(freedom.attr("dim"))[0];
    variances.freedom = Rcpp::as<double>(parts["total"]);
    variances.expected = values(parts, "expected");
    variances.of_prior = values(parts, "of_prior");
    variances.of_sum = values(parts, "of_sum");
    variances.of_freedom = values(parts, "of_freedom");
    LargestStatistics out;
    out.num_outcomes = INTEGER(first.attr("dim"))[1];
    const int num_outcomes = static_cast<int>(out.num_outcomes);
    Rcpp::NumericMatrix kept(num_kept, num_outcomes);
    Rcpp::NumericVector largest(num_outcomes, R_NegInf);
    Rcpp::NumericVector moments(
        Rcpp::Dimension(4, variances.num_parts, num_outcomes));
    out.place = at.data();
    out.form = form == "score"   ? StatisticForm::score
               : form == "plain" ? StatisticForm::plain
                                 : StatisticForm::freedom;
    out.kept = kept.begin();
    out.num_kept = num_kept;
    out.largest = largest.begin();
    if (variances.of_prior == nullptr) out.moments = moments.begin();
    if (has_levels) {
      const LevelOutcomes levels = {INTEGER(first), values(outcomes, "root")};
      permuted_statistics(points, levels, variances, num_threads,
                          progress.get(), out);
    } else {
      SlopeOutcomes slopes;
      slopes.columns = values(outcomes, "columns");
      slopes.weight = values(outcomes, "weight");
      slopes.weighted = values(outcomes, "weighted");
      slopes.last = values(outcomes, "last");
      slopes.side = sign == "absolute"   ? StatisticSide::absolute
                    : sign == "negative" ? StatisticSide::negative
                                         : StatisticSide::signed_t;
      permuted_statistics(points, slopes, variances, num_threads,
                          progress.get(), out);
    }
    return Rcpp::List::create(Rcpp::_["kept"] = kept,
                              Rcpp::_["largest"] = largest,
                              Rcpp::_["moments"] = moments);
  });
}
