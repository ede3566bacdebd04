// Counts and sums over all pairs of points.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bind_common.hpp"
#include "core/base/buffer.hpp"
#include "core/contract/scaling.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/module_statistics.hpp"
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

namespace {

/// Rows of length 1 with padding, from a matrix with points in columns.
struct PaddedRows {
  explicit PaddedRows(const Rcpp::NumericMatrix& columns) {
    rows.size = columns.ncol();
    rows.features = columns.nrow();
    rows.padded = padded_features(rows.features);
    values = Buffer<double>(rows.size * rows.padded);
    rows.first = values.data();
    for (std::int64_t i = 0; i < rows.size; ++i) {
      double* const row = values.data() + i * rows.padded;
      std::copy_n(columns.begin() + i * rows.features, rows.features, row);
      clear_padding(row, rows.features, rows.padded);
    }
  }
  cpu::UnitRows rows;
  Buffer<double> values;
};

std::vector<std::vector<std::int32_t>> sets_of(const Rcpp::List& numbers) {
  std::vector<std::vector<std::int32_t>> sets;
  for (const SEXP one : numbers) sets.push_back(bind::numbers_from(one));
  return sets;
}

}  // namespace

// The statistics of modules (cpu/search/module_statistics.hpp): [7 x modules]
// observed, and [7 x modules x sets] of random sets. reference, test: [features
// x points], of length 1. drawn: [most x sets], points of `test` from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_preserve_modules(Rcpp::NumericMatrix reference,
                                Rcpp::NumericMatrix test,
                                Rcpp::List in_reference, Rcpp::List in_test,
                                Rcpp::IntegerMatrix drawn, std::string type,
                                double power, std::string instruction_set,
                                int num_threads, bool show_progress) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress =
        bind::r_progress(show_progress, "Random modules");
    const PaddedRows first(reference), second(test);
    cpu::ModuleQuestion question;
    question.reference = first.rows;
    question.test = second.rows;
    question.in_reference = sets_of(in_reference);
    question.in_test = sets_of(in_test);
    const std::vector<std::int32_t> sets = bind::numbers_from(drawn);
    question.sets = sets.data();
    question.most = drawn.nrow();
    question.num_sets = drawn.ncol();
    question.type = network_type_of(type);
    question.power = power;
    question.instruction_set = instruction_set;
    question.num_threads = num_threads;
    static_assert(sizeof(cpu::ModuleStatistics) == 7 * sizeof(double),
                  "the statistics are doubles, one after another");
    const R_xlen_t modules = in_reference.size();
    Rcpp::NumericVector observed(7 * modules), null(7 * modules * drawn.ncol());
    cpu::preserve_modules(
        question, reinterpret_cast<cpu::ModuleStatistics*>(observed.begin()),
        reinterpret_cast<cpu::ModuleStatistics*>(null.begin()), progress.get());
    return Rcpp::List::create(Rcpp::_["observed"] = observed,
                              Rcpp::_["null"] = null);
  });
}
