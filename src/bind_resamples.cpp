#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "bind_common.hpp"
#include "bind_held.hpp"
#include "core/contract/covariates.hpp"
#include "core/graph/edge_counts.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/vanishing.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

struct TooFewPoints : Failure {
  TooFewPoints(std::int64_t which, std::int64_t how_many)
      : Failure("too few points are left"), resample(which), left(how_many) {}
  std::int64_t resample, left;
};

Vanishing::Rule rule_from(const std::string& undefined_rows) {
  if (undefined_rows == "constant") return Vanishing::Rule::constant;
  if (undefined_rows == "zero") return Vanishing::Rule::zero;
  return Vanishing::Rule::none;
}

/// Searches the same points repeatedly with different features, and counts how
/// often each edge is found.
class Resamples {
 public:
  /// list: a request with `resamples`, as R/significance-resamples.R makes it.
  Resamples(SEXP x, const Rcpp::List& list, Progress* progress)
      : x_(x),
        asked_(bind::request_from(list)),
        given_(Rcpp::as<Rcpp::List>(list["resamples"])),
        features_(Rcpp::as<Rcpp::List>(given_["features"])),
        weights_(Rcpp::as<Rcpp::List>(given_["weights"])),
        covariates_(Rcpp::as<Rcpp::List>(given_["adjust"])),
        on_gpu_(Rcpp::as<std::string>(list["backend"]) == "cuda"),
        fill_(bind::fills(x, list)),
        subset_(bind::numbers_from(list["subset"])),
        values_(bind::row_source(x)),
        rows_(subset_.empty() ? values_->num_points()
                              : static_cast<std::int64_t>(subset_.size())),
        counts_(rows_, asked_.k, Rcpp::as<int>(given_["total"]),
                Rcpp::as<int>(given_["least"])),
        distance_(rows_ * asked_.k),
        absent_(static_cast<R_xlen_t>(values_->num_points())),
        watched_row_(Rcpp::as<Rcpp::IntegerVector>(given_["row"])),
        watched_to_(Rcpp::as<Rcpp::IntegerVector>(given_["to"])),
        vanishing_(*values_,
                   rule_from(Rcpp::as<std::string>(given_["undefined_rows"])),
                   Rcpp::as<int>(given_["fewest"]), asked_.num_threads,
                   progress) {
    if (!asked_.na_pairwise) held_.reset(new bind::Held(x, list));
    for (R_xlen_t e = 0; e < watched_to_.size(); ++e)
      counts_.watch(AnswerRow::of(watched_row_[e] - 1),
                    PointId{watched_to_[e] - 1});
  }

  void run(Progress* progress) {
    PartOfProgress part(progress);
    const std::int64_t num = features_.size();
    for (std::int64_t r = 0; r < num; ++r) {
      part.set_part(r, num);
      search(r, &part);
    }
    counts_.finish(asked_.num_threads);
  }

  Rcpp::List answer() const {
    Rcpp::IntegerVector watched(watched_to_.size());
    for (R_xlen_t e = 0; e < watched.size(); ++e)
      watched[e] = static_cast<int>(counts_.count(
          AnswerRow::of(watched_row_[e] - 1), PointId{watched_to_[e] - 1}));
    const EdgeCounts::Others others = counts_.others(asked_.num_threads);
    return Rcpp::List::create(Rcpp::_["count"] = watched,
                              Rcpp::_["row"] = bind::one_based(others.row),
                              Rcpp::_["to"] = bind::one_based(others.to),
                              Rcpp::_["times"] = Rcpp::wrap(others.count),
                              Rcpp::_["absent"] = absent_,
                              Rcpp::_["stats"] = bind::list_of(stats_));
  }

 private:
  /// The points that are undefined with these features.
  std::vector<std::int64_t> gone_by(const std::vector<std::int32_t>& features,
                                    const Request& request,
                                    Progress* progress) const {
    if (request.covariates == nullptr)
      return vanishing_.by(features, request.num_threads, progress);
    // Only preparing a row shows whether covariates leave a residual.
    Preparing preparing;
    preparing.recipe = recipe_of(request, 0);
    preparing.kernel = cpu::choose_kernels(request.instruction_set).prepare_row;
    const MatrixFacts facts =
        scan(*bind::row_source(x_, features, fill_), request.num_threads,
             progress, {}, preparing);
    std::vector<std::int64_t> gone;
    std::set_union(facts.constant.begin(), facts.constant.end(),
                   facts.explained.begin(), facts.explained.end(),
                   std::back_inserter(gone));
    return gone;
  }

  /// The points to leave out of a search.
  std::vector<std::int64_t> skip_with(const std::vector<std::int64_t>& gone,
                                      std::int64_t r) {
    std::vector<std::int64_t> skip;
    std::set_union(asked_.skip.begin(), asked_.skip.end(), gone.begin(),
                   gone.end(), std::back_inserter(skip));
    for (const std::int64_t i : gone)
      if (!std::binary_search(asked_.skip.begin(), asked_.skip.end(), i))
        ++absent_[static_cast<R_xlen_t>(i)];
    const std::int64_t left =
        values_->num_points() - static_cast<std::int64_t>(skip.size());
    if (left <= asked_.k) throw TooFewPoints(r, left);
    return skip;
  }

  void search(std::int64_t r, Progress* progress) {
    const std::vector<std::int32_t> features = bind::numbers_from(features_[r]);
    Request request = asked_;
    request.largest = -1;  // unknown for these features
    if (!Rf_isNull(weights_[r]))
      request.weights = std::make_shared<SampleWeights>(
          Rcpp::as<std::vector<double>>(weights_[r]));
    if (!Rf_isNull(covariates_[r])) {
      const Rcpp::NumericMatrix values = covariates_[r];
      request.covariates = std::make_shared<SampleCovariates>(
          values.begin(), values.nrow(), values.ncol(), request.weights.get());
    }
    request.skip = skip_with(gone_by(features, request, progress), r);
    std::unique_ptr<RowSource> read;
    if (held_ == nullptr) read = bind::row_source(x_, features, fill_);
    const RowSource& points =
        held_ != nullptr ? held_->choose_features(features) : *read;
    std::unique_ptr<RowSubset> some;
    if (!subset_.empty()) {
      request.query_self = subset_;
      request.query_skip = positions_in(subset_, request.skip);
      some.reset(new RowSubset(points, subset_));
    }
    Neighbours out;
    out.rows = rows_;
    out.index = counts_.next();
    out.distance = distance_.data();
    Stats stats;
    if (held_ != nullptr)
      held_->find_neighbours(on_gpu_, request, some.get(), out, progress,
                             &stats);
    else
      (on_gpu_ ? cuda::find_neighbours : cpu::find_neighbours)(
          request, points, some.get(), out, progress, &stats);
    counts_.take(asked_.num_threads);
    add(stats);
  }

  /// Adds the statistics of a search after the others.
  void add(const Stats& s) {
    const double emitted = stats_.seconds_emit + s.seconds_emit;
    const double on_device = stats_.seconds_device + s.seconds_device;
    stats_.add_part(s);
    stats_.seconds_emit = emitted;
    stats_.seconds_device = on_device;
    stats_.seconds_prepare += s.seconds_prepare;
    stats_.seconds_search += s.seconds_search;
    stats_.bytes_device = std::max(stats_.bytes_device, s.bytes_device);
    stats_.num_devices = std::max(stats_.num_devices, s.num_devices);
    stats_.streamed = stats_.streamed || s.streamed;
  }

  const SEXP x_;
  const Request asked_;
  const Rcpp::List given_, features_, weights_, covariates_;
  const bool on_gpu_, fill_;
  const std::vector<std::int32_t> subset_;
  const std::unique_ptr<RowSource> values_;
  const std::int64_t rows_;
  EdgeCounts counts_;
  Buffer<double> distance_;  ///< not used
  Rcpp::IntegerVector absent_;
  const Rcpp::IntegerVector watched_row_, watched_to_;
  const Vanishing vanishing_;
  /// Null: pairs are compared over common samples, for which nothing is held.
  std::unique_ptr<bind::Held> held_;
  Stats stats_;
};

}  // namespace

// Counts the searches of `resamples` that found each edge.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_count_edges(SEXP x, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    try {
      Resamples resamples(x, request, progress.get());
      resamples.run(progress.get());
      return resamples.answer();
    } catch (const TooFewPoints& e) {
      return Rcpp::List::create(
          Rcpp::_["failure"] = "too_few_points",
          Rcpp::_["resample"] = static_cast<double>(e.resample + 1),
          Rcpp::_["left"] = static_cast<double>(e.left));
    }
  });
}

// Distances and, if they exist, r or the similarity of the pairs (from, to), by
// number. Also the number of samples, if it differs between pairs.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_measure_pairs(SEXP x, SEXP from, SEXP to, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    cpu::ListedPairs pairs;
    pairs.from = bind::numbers_from(from);
    pairs.to = bind::numbers_from(to);
    const std::unique_ptr<RowSource> points = bind::row_source(x, request);
    cpu::measure_pairs(bind::request_from(request), *points, pairs,
                       progress.get());
    return Rcpp::List::create(
        Rcpp::_["distance"] = Rcpp::wrap(pairs.distance),
        Rcpp::_["correlation"] = Rcpp::wrap(pairs.correlation),
        Rcpp::_["similarity"] = Rcpp::wrap(pairs.similarity),
        Rcpp::_["entry"] = Rcpp::wrap(pairs.entry),
        Rcpp::_["common"] = Rcpp::wrap(pairs.common));
  });
}
