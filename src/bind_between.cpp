// Pairs of two blocks of the points, and the answer for all points, merged from
// such parts.

#include "bind_answer.hpp"
#include "bind_within.hpp"
#include "core/search/between.hpp"
#include "core/search/merged_lists.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

/// Lists of the blocks' points, one after another.
class PartAnswer final : public WithinRows {
 public:
  /// num_rows: of both blocks; rows without an entry have count 0.
  PartAnswer(std::int64_t num_rows, bool with_correlation)
      : with_correlation_(with_correlation),
        count_(bind::new_vector(INTSXP, num_rows)) {
    std::fill_n(INTEGER(count_), num_rows, 0);
  }
  void allocate(const Counts& counts) override {
    std::copy(counts.begin(), counts.end(), INTEGER(count_));
    first_.assign(1, 0);
    for (const std::int32_t count : counts)
      first_.push_back(first_.back() + count);
    make(first_.back());
  }
  Row row(std::int64_t row) override {
    const std::int64_t at = first_[static_cast<std::size_t>(row)];
    return {INTEGER(index_) + at, REAL(distance_) + at,
            with_correlation_ ? REAL(correlation_) + at : nullptr};
  }

  /// Converts numbers within a block to those of all points.
  void count_from(std::int64_t first) {
    int* const index = INTEGER(index_);
    const int before = static_cast<int>(first);
    std::for_each(index, index + size(), [&](int& i) { i += before; });
  }
  /// As bind::EdgeAnswer::keep_similar().
  void keep_similar(Sign sign, double least) {
    if (!with_correlation_) return;
    const PartAnswer all = *this;
    const double* const r = REAL(all.correlation_);
    const auto similar = [&](double x) {
      return bind::is_similar(sign, x, least);
    };
    const R_xlen_t left = std::count_if(r, r + size(), similar);
    if (left == size()) return;
    make(left);
    R_xlen_t to = 0;
    for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
      const R_xlen_t before = to;
      for (R_xlen_t e = first_[i]; e < first_[i + 1]; ++e) {
        if (!similar(r[e])) continue;
        INTEGER(index_)[to] = INTEGER(all.index_)[e];
        REAL(distance_)[to] = REAL(all.distance_)[e];
        REAL(correlation_)[to++] = r[e];
      }
      INTEGER(count_)[i] = static_cast<int>(to - before);
    }
  }

  Rcpp::List list(const Stats& stats) const {
    return Rcpp::List::create(
        Rcpp::_["count"] = count_, Rcpp::_["index"] = index_,
        Rcpp::_["distance"] = distance_, Rcpp::_["correlation"] = correlation_,
        Rcpp::_["stats"] = bind::list_of(stats));
  }

 private:
  R_xlen_t size() const { return Rf_xlength(index_); }
  void make(std::int64_t size) {
    index_ = bind::new_vector(INTSXP, size);
    distance_ = bind::new_vector(REALSXP, size);
    if (with_correlation_) correlation_ = bind::new_vector(REALSXP, size);
  }

  const bool with_correlation_;
  std::vector<std::int64_t> first_;
  Rcpp::RObject count_, index_, distance_, correlation_;
};

/// blocks: first and last of a, and of b if it exists; from 1.
Between between_from(const Rcpp::NumericVector& blocks) {
  const auto block = [&](R_xlen_t at) -> Block {
    if (blocks.size() < at + 2) return {};
    const std::int64_t first = static_cast<std::int64_t>(blocks[at]) - 1;
    return {first, static_cast<std::int64_t>(blocks[at + 1]) - first};
  };
  Between between;
  between.a = block(0);
  between.b = block(2);
  return between;
}

/// "brute" is the answer by definition.
std::string backend_of(const Rcpp::List& request) {
  return Rcpp::as<std::string>(request["backend"]);
}

Rcpp::List nearest_between(bind::Question& q, const Between& between,
                           const Rcpp::List& request, Progress* progress) {
  PartAnswer answer(between.num_rows(), Rcpp::as<bool>(request["correlation"]));
  Stats stats;
  if (backend_of(request) == "brute")
    brute_between(q.request, between, *q.points, answer);
  else
    (backend_of(request) == "cuda" ? cuda::find_between : cpu::find_between)(
        q.request, between, *q.points, answer, progress, &stats);
  return answer.list(stats);
}

Rcpp::List all_between(bind::Question& q, const Between& between,
                       const Rcpp::List& request, Progress* progress) {
  const bool unit_dot = q.request.metric->is_unit_dot();
  PartAnswer answer(between.num_rows(), unit_dot);
  Stats stats;
  const FindWithin find = [&](const Request& r, const Within& within,
                              const RowSource& points, const RowSource* queries,
                              WithinAnswer& to) {
    if (backend_of(request) == "brute")
      return brute_within(r, within, points, queries, to);
    (backend_of(request) == "cuda" ? cuda::find_within : cpu::find_within)(
        r, within, points, queries, to, progress, &stats);
  };
  try {
    within_between(q.request, between, bind::within_from(request), *q.points,
                   find, answer);
  } catch (const TooManyPairs& e) {
    return bind::failure_of(e);
  }
  answer.count_from((between.b.count > 0 ? between.b : between.a).first);
  const Rcpp::List least = request["within"];
  if (Rcpp::as<bool>(request["as_edges"]) && !Rf_isNull(least["similarity"]))
    answer.keep_similar(q.request.metric->sign,
                        Rcpp::as<double>(least["similarity"]));
  return answer.list(stats);
}

/// Lists as cpp_between() returns them; `part` must outlive the result.
PartialLists lists_of(const Rcpp::List& part) {
  const SEXP count = part["count"], index = part["index"];
  const SEXP distance = part["distance"], correlation = part["correlation"];
  const R_xlen_t size = Rf_xlength(index);
  const auto is = [&](SEXP x, SEXPTYPE type) {
    return TYPEOF(x) == static_cast<int>(type) && Rf_xlength(x) == size;
  };
  if (TYPEOF(count) != INTSXP || !is(index, INTSXP) || !is(distance, REALSXP) ||
      !(Rf_isNull(correlation) || is(correlation, REALSXP)))
    throw std::invalid_argument("these are no lists");
  PartialLists lists;
  lists.num_rows = Rf_xlength(count);
  lists.num_entries = size;
  lists.count = INTEGER(count);
  lists.index = INTEGER(index);
  lists.distance = REAL(distance);
  if (!Rf_isNull(correlation)) lists.correlation = REAL(correlation);
  return lists;
}

/// An external pointer to the result of `make`, or a failure.
template <class T>
SEXP handle_of(const std::function<T*()>& make) {
  Rcpp::RObject out;
  const Rcpp::List failed = bind::guarded([&] {
    out = Rcpp::XPtr<T>(make());
    return Rcpp::List();
  });
  return out.isNULL() ? Rcpp::RObject(failed) : out;
}

/// All pairs within a distance, merged from parts that have each pair once.
class MergedPairs {
 public:
  MergedPairs(const Rcpp::List& request, std::int64_t num_points)
      : request_(bind::request_from(request)),
        within_(bind::within_from(request)),
        as_edges_(within_.once),
        edges_(request_.metric->is_unit_dot(), nullptr),
        collector_(request_, within_, num_points, true) {
    const Rcpp::List least = request["within"];
    if (as_edges_ && !Rf_isNull(least["similarity"])) {
      keeps_similar_ = true;
      least_ = Rcpp::as<double>(least["similarity"]);
    }
    num_points_ = num_points;
  }

  void take(const Between& between, const PartialLists& part) {
    const bool unit_dot = request_.metric->is_unit_dot();
    if (part.num_rows != between.num_rows() ||
        (unit_dot && part.correlation == nullptr))
      throw std::invalid_argument("these are no lists of those points");
    WithinCollector::Taker taker(collector_);
    std::int64_t e = 0;
    for (std::int64_t r = 0; r < part.num_rows; ++r) {
      const std::int64_t in_b = r - between.a.count;
      const std::int64_t point =
          in_b < 0 ? between.a.first + r : between.b.first + in_b;
      const std::int64_t end = e + part.count[r];
      if (end < e || end > part.num_entries || point >= num_points_)
        throw std::invalid_argument("these are no lists of those points");
      for (; e < end; ++e) {
        const std::int32_t other = part.index[e] - 1;
        if (other < 0 || other >= num_points_ || other == point)
          throw std::invalid_argument("there is no such point");
        taker.take(AnswerRow::of(point), PointId{other},
                   unit_dot ? part.correlation[e] : part.distance[e]);
      }
    }
  }
  /// Whether all parts must be taken again.
  bool allocate() { return !collector_.allocate(answer()); }
  Rcpp::List finish() {
    collector_.finish();
    if (keeps_similar_) edges_.keep_similar(request_.metric->sign, least_);
    return as_edges_ ? edges_.list() : lists_.list();
  }

 private:
  WithinAnswer& answer() {
    if (as_edges_) return edges_;
    return lists_;
  }
  const Request request_;
  const Within within_;
  const bool as_edges_;
  bool keeps_similar_ = false;
  double least_ = 0.0;
  std::int64_t num_points_ = 0;
  bind::ListAnswer lists_;
  bind::EdgeAnswer edges_;
  WithinCollector collector_;
};

}  // namespace

// The neighbours of the points of two blocks in each other (see
// R/search-ask_between.R). blocks: first and last of a, and of b; with a only,
// a with itself.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_between(SEXP x, Rcpp::NumericVector blocks, SEXP limits,
                       Rcpp::List request) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    bind::Question q(x, R_NilValue, request);
    if (q.subset != nullptr)
      throw std::invalid_argument("such a search is not of block by block");
    Between between = between_from(blocks);
    if (!Rf_isNull(limits))
      between.limits = Rcpp::as<std::vector<double>>(limits);
    const bool within =
        request.containsElementNamed("within") && !Rf_isNull(request["within"]);
    return (within ? all_between : nearest_between)(q, between, request,
                                                    progress.get());
  });
}

// A handle of empty lists of the k nearest for all points, or a failure.
// [[Rcpp::export(rng = false)]]
SEXP cpp_new_lists(double num_points, double k, bool correlation) {
  return handle_of<MergedLists>([&] {
    return new MergedLists(static_cast<std::int64_t>(num_points),
                           static_cast<std::int64_t>(k), correlation);
  });
}

// Merges the result of cpp_between() for these blocks; duplicates count once.
// Returns an empty list, or a failure, which leaves the lists unchanged.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_merge_lists(SEXP lists, Rcpp::NumericVector blocks,
                           Rcpp::List part, int num_threads) {
  return bind::guarded([&] {
    const Between between = between_from(blocks);
    Rcpp::XPtr<MergedLists>(lists)->merge(between.a, between.b, lists_of(part),
                                          num_threads);
    return Rcpp::List();
  });
}

// For the points from first to last, the distance of the k-th neighbour so far;
// Inf if there are fewer.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector cpp_limits_of(SEXP lists, double first, double last) {
  const Rcpp::XPtr<MergedLists> all(lists);
  if (!(first >= 1 && last >= first &&
        last <= static_cast<double>(all->num_points())))
    Rcpp::stop("There are no such points.");
  Rcpp::NumericVector limits(static_cast<R_xlen_t>(last - first) + 1);
  for (R_xlen_t i = 0; i < limits.size(); ++i)
    limits[i] = all->limit(
        PointId{static_cast<std::int32_t>(first) - 1 + static_cast<int>(i)});
  return limits;
}

// The whole answer as from cpp_knn_search(), without `stats`.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_answer_of_lists(SEXP lists, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const Rcpp::XPtr<MergedLists> all(lists);
    const Request r = bind::request_from(request);
    if (r.k != all->k())
      throw std::invalid_argument("the lists are of another k");
    const bind::Answer answer(r, all->num_points(), nullptr,
                              Rcpp::as<bool>(request["correlation"]),
                              Rcpp::as<bool>(request["as_edges"]));
    all->emit(answer.view, r.skip, r.num_threads);
    return answer.list(R_NilValue);
  });
}

// Frees the memory immediately.
// [[Rcpp::export(rng = false)]]
void cpp_give_back_lists(SEXP lists) {
  Rcpp::XPtr<MergedLists>(lists).release();
}

// A handle of all pairs within a distance, for the request's `within`,
// initially empty; or a failure.
// [[Rcpp::export(rng = false)]]
SEXP cpp_new_pairs(double num_points, Rcpp::List request) {
  return handle_of<MergedPairs>([&] {
    return new MergedPairs(request, static_cast<std::int64_t>(num_points));
  });
}

// Takes the result of cpp_between() for these blocks, once for each two blocks.
// Returns an empty list, or a failure.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_take_pairs(SEXP pairs, Rcpp::NumericVector blocks,
                          Rcpp::List part) {
  return bind::guarded([&] {
    Rcpp::XPtr<MergedPairs>(pairs)->take(between_from(blocks), lists_of(part));
    return Rcpp::List();
  });
}

// Call it after all parts were taken. Returns list(again): whether all parts
// must be taken again, now that memory is allocated; or a failure.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_allocate_pairs(SEXP pairs) {
  return bind::guarded([&]() -> Rcpp::List {
    try {
      return Rcpp::List::create(Rcpp::_["again"] =
                                    Rcpp::XPtr<MergedPairs>(pairs)->allocate());
    } catch (const TooManyPairs& e) {
      return bind::failure_of(e);
    }
  });
}

// The whole answer as from cpp_within_search(), without `stats`.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_answer_of_pairs(SEXP pairs) {
  return bind::guarded(
      [&] { return Rcpp::XPtr<MergedPairs>(pairs)->finish(); });
}
