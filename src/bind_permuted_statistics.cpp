// Studentized statistics of permuted outcomes.

#include "bind_common.hpp"
#include "core/search/permuted_statistics.hpp"

using namespace fsknn;

// The largest statistic of all rows for each outcome, and all statistics of
// some rows: [num_kept x outcomes]. place: the row of these that a row has
// (from 1), 0 if only the largest counts, or -1 if the row does not count.
// outcomes: from outcomes_for() in R.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_permuted_statistics(Rcpp::NumericMatrix rows,
                                   Rcpp::List outcomes, std::string sign,
                                   Rcpp::IntegerVector place, int num_kept,
                                   int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    PointRows points;
    points.values = rows.begin();
    points.num_rows = rows.nrow();
    points.num_samples = rows.ncol();
    std::vector<int> at(place.begin(), place.end());
    for (int& one : at) --one;
    const bool has_levels = outcomes.containsElementNamed("levels");
    const Rcpp::RObject first = outcomes[has_levels ? "levels" : "columns"];
    LargestStatistics out;
    out.num_outcomes = INTEGER(first.attr("dim"))[1];
    const int num_outcomes = static_cast<int>(out.num_outcomes);
    Rcpp::NumericMatrix kept(num_kept, num_outcomes);
    Rcpp::NumericVector largest(num_outcomes, R_NegInf);
    out.place = at.data();
    out.kept = kept.begin();
    out.num_kept = num_kept;
    out.largest = largest.begin();
    if (has_levels) {
      LevelOutcomes levels;
      levels.levels = INTEGER(first);
      permuted_statistics(points, levels, num_threads, progress.get(), out);
    } else {
      const auto values = [&](const char* name) -> const double* {
        return REAL(outcomes[name]);
      };
      RobustOutcomes robust;
      robust.columns = values("columns");
      robust.weight = values("weight");
      robust.weighted = values("weighted");
      robust.last = values("last");
      if (outcomes.containsElementNamed("inside")) {
        robust.inside = values("inside");
        robust.num_inside = values("num_inside");
      }
      robust.side = sign == "absolute"   ? StatisticSide::absolute
                    : sign == "negative" ? StatisticSide::negative
                                         : StatisticSide::signed_t;
      permuted_statistics(points, robust, num_threads, progress.get(), out);
    }
    return Rcpp::List::create(Rcpp::_["kept"] = kept,
                              Rcpp::_["largest"] = largest);
  });
}
