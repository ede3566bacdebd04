#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "bind_answer.hpp"
#include "bind_held.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

/// A question for the k nearest, and the storage for its answer.
struct Nearest : bind::Question {
  Nearest(SEXP x, SEXP query, const Rcpp::List& list)
      : bind::Question(x, query, list),
        answer(request, (asked() != nullptr ? *asked() : *points).num_points(),
               subset.get(), Rcpp::as<bool>(list["correlation"]),
               // Rows may have fewer edges: R makes these from matrices.
               Rcpp::as<bool>(list["as_edges"]) && !request.na_pairwise) {}
  /// Returns the answer's list.
  Rcpp::List find(bool on_gpu, Progress* progress) {
    Stats stats;
    if (held != nullptr)
      held->find_neighbours(on_gpu, request, asked(), answer.view, progress,
                            &stats);
    else
      (on_gpu ? cuda::find_neighbours : cpu::find_neighbours)(
          request, *points, asked(), answer.view, progress, &stats);
    return answer.list(bind::list_of(stats));
  }
  bind::Answer answer;
};

/// Stops a search as soon as its filter is chosen.
class UntilChosen final : public Progress {
 public:
  explicit UntilChosen(Progress& to) : to_(to) {}
  bool report(double done) override {
    const bool goes_on = to_.report(done);
    stopped |= !goes_on;
    return goes_on;
  }
  bool chosen(const ChosenFilter& filter) override {
    is_chosen = true;
    found = filter;
    return false;
  }
  bool is_chosen = false;
  /// The user stopped it, possibly while other GPUs are ending.
  bool stopped = false;
  ChosenFilter found;

 private:
  Progress& to_;
};

bool is_on_gpu(const Rcpp::List& request) {
  return Rcpp::as<std::string>(request["backend"]) == "cuda";
}

}  // namespace

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_knn_search(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    Nearest q(x, query, request);
    return q.find(is_on_gpu(request), progress.get());
  });
}

// The filter that such a search would use: runs it until the choice, and no
// further. If several parts have a filter each, returns the first.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_chosen_filter(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    UntilChosen until(*progress);
    Nearest q(x, query, request);
    try {
      q.find(is_on_gpu(request), &until);
    } catch (const Interrupted&) {
      if (!until.is_chosen || until.stopped) throw;
    }
    return Rcpp::List::create(
        Rcpp::_["bits"] = bits_of(until.found.numbers),
        Rcpp::_["form"] = static_cast<int>(until.found.numbers),
        Rcpp::_["by_keys"] = until.found.by_keys);
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_brute_force(SEXP x, SEXP query, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    Nearest q(x, query, request);
    brute_force(q.request, *q.points, q.asked(), q.answer.view);
    return q.answer.list(Rcpp::List());
  });
}

// names[at], for tens of millions of edges. Each assignment accesses the string
// itself, which is seldom in the cache, so it is prefetched.
// [[Rcpp::export(rng = false)]]
Rcpp::CharacterVector cpp_names_at(Rcpp::CharacterVector names,
                                   Rcpp::IntegerVector at) {
  constexpr R_xlen_t ahead = 24;
  const R_xlen_t length = at.size();
  const int* index = at.begin();
  const R_xlen_t most = names.size();
  // NA is below 1.
  if (!std::all_of(index, index + length,
                   [&](int i) { return i >= 1 && i <= most; }))
    Rcpp::stop("There is no such name.");
  Rcpp::Shield<SEXP> out(Rf_allocVector(STRSXP, length));
  const SEXP* strings = STRING_PTR_RO(names);
  for (R_xlen_t e = 0; e < length; ++e) {
    if (e % (1 << 20) == 0) Rcpp::checkUserInterrupt();
    if (e + ahead < length)
      __builtin_prefetch(strings[index[e + ahead] - 1], 1);
    SET_STRING_ELT(out, e, strings[index[e] - 1]);
  }
  return Rcpp::CharacterVector(out);
}

// Rows of an answer's matrices as lists of vectors: the first k[i] of row i, or
// fewer if it has fewer, since missing neighbours are at its end.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_cut_rows(Rcpp::IntegerMatrix index, Rcpp::NumericMatrix distance,
                        Rcpp::NumericVector k) {
  const int rows = index.nrow();
  const double most = index.ncol();
  if (distance.nrow() != rows || distance.ncol() != index.ncol() ||
      k.size() != rows || !std::all_of(k.begin(), k.end(), [&](double count) {
        return count >= 0 && count <= most;
      }))
    Rcpp::stop("The rows are not so long.");
  Rcpp::List indices(rows), distances(rows);
  for (int i = 0; i < rows; ++i) {
    int count = static_cast<int>(k[i]);
    while (count > 0 && index(i, count - 1) == NA_INTEGER) --count;
    Rcpp::IntegerVector of_index(count);
    Rcpp::NumericVector of_distance(count);
    for (int rank = 0; rank < count; ++rank) {
      of_index[rank] = index(i, rank);
      of_distance[rank] = distance(i, rank);
    }
    indices[i] = of_index;
    distances[i] = of_distance;
  }
  return Rcpp::List::create(Rcpp::_["index"] = indices,
                            Rcpp::_["distance"] = distances);
}

// For tests: the rows that pairs are computed from, [padded features x points],
// and their sums; `ids`: of these points only (from 1), or NULL.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_prepared(SEXP x, SEXP ids, Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const Request r = bind::request_from(request);
    const std::unique_ptr<RowSource> source = bind::row_source(x, request);
    std::vector<std::int32_t> points;
    if (!Rf_isNull(ids)) {
      points = Rcpp::as<std::vector<std::int32_t>>(ids);
      for (std::int32_t& i : points) --i;
    } else {
      points.resize(static_cast<std::size_t>(source->num_points()));
      std::iota(points.begin(), points.end(), 0);
    }
    const int padded =
        static_cast<int>(padded_features(source->num_features()));
    const int count = static_cast<int>(points.size());
    Rcpp::NumericMatrix rows(padded, count);
    Rcpp::NumericVector sums(count);
    if (is_on_gpu(request)) {
      cuda::prepared_rows(r, *source, Rf_isNull(ids) ? nullptr : &points,
                          rows.begin(), sums.begin());
    } else {
      const Request asked = suited(r, *source, nullptr, progress.get());
      const PreparedPoints all = prepare_points(
          *source,
          recipe_of(asked,
                    common_exponent(asked, *source, nullptr, r.num_threads)),
          {}, false, cpu::choose_kernels(r.instruction_set).prepare_row,
          r.num_threads);
      for (int i = 0; i < count; ++i) {
        // No point is left out or shuffled, so a point's place is its id.
        const Place place = {points[static_cast<std::size_t>(i)]};
        const double* row = all.row(place);
        std::copy_n(row, padded,
                    rows.begin() + static_cast<R_xlen_t>(i) * padded);
        sums[i] = all.sums[place.value];
      }
    }
    return Rcpp::List::create(Rcpp::_["rows"] = rows, Rcpp::_["sums"] = sums);
  });
}
