// Shared-nearest-neighbour graphs.

#include <algorithm>

#include "bind_common.hpp"
#include "core/graph/shared.hpp"
#include "core/search/within.hpp"

using namespace fsknn;

namespace {

/// Converts a matrix of numbers from 1, one row per point, or a list of such
/// vectors. Missing entries are dropped. Or takes over the sets of
/// cpp_room_for_sets().
NeighbourSets sets_from(SEXP index) {
  if (TYPEOF(index) == EXTPTRSXP)
    return std::move(*Rcpp::XPtr<NeighbourSets>(index).checked_get());
  NeighbourSets sets;
  const auto add = [&](int i) {
    if (i != NA_INTEGER) sets.index.push_back(i - 1);
  };
  const auto end_row = [&] {
    sets.start.push_back(static_cast<std::int64_t>(sets.index.size()));
  };
  if (TYPEOF(index) == VECSXP) {
    const Rcpp::List rows(index);
    for (R_xlen_t i = 0; i < rows.size(); ++i) {
      for (const int at : Rcpp::IntegerVector(rows[i])) add(at);
      end_row();
    }
    return sets;
  }
  const Rcpp::IntegerMatrix rows(index);
  sets.index.reserve(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.nrow(); ++i) {
    for (int rank = 0; rank < rows.ncol(); ++rank) add(rows(i, rank));
    end_row();
  }
  return sets;
}

SharedKind kind_of(const std::string& name) {
  if (name == "rank") return SharedKind::rank;
  return name == "number" ? SharedKind::number : SharedKind::jaccard;
}

template <class Vector, class T>
Vector joined(const std::vector<SharedEdges>& parts,
              std::vector<T> SharedEdges::*column) {
  R_xlen_t size = 0;
  for (const SharedEdges& part : parts)
    size += static_cast<R_xlen_t>((part.*column).size());
  Vector all(size);
  R_xlen_t at = 0;
  for (const SharedEdges& part : parts) {
    std::copy((part.*column).begin(), (part.*column).end(), all.begin() + at);
    at += static_cast<R_xlen_t>((part.*column).size());
  }
  return all;
}

}  // namespace

// Room for `count` neighbours, which cpp_add_to_sets() fills row by row.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_room_for_sets(double count) {
  return bind::guarded([&] {
    std::unique_ptr<NeighbourSets> sets(new NeighbourSets);
    sets->index.reserve(static_cast<std::size_t>(count));
    return Rcpp::List::create(
        Rcpp::_["sets"] = Rcpp::XPtr<NeighbourSets>(sets.release(), true));
  });
}

// Adds the next rows.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_add_to_sets(SEXP sets, Rcpp::IntegerMatrix index) {
  return bind::guarded([&] {
    NeighbourSets& all = *Rcpp::XPtr<NeighbourSets>(sets).checked_get();
    for (int i = 0; i < index.nrow(); ++i) {
      for (int rank = 0; rank < index.ncol(); ++rank)
        if (index(i, rank) != NA_INTEGER)
          all.index.push_back(index(i, rank) - 1);
      all.start.push_back(static_cast<std::int64_t>(all.index.size()));
    }
    return Rcpp::List();
  });
}

// index: see sets_from().
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_shared_neighbours(SEXP index, std::string type, double least,
                                 double most, int num_threads, bool progress) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> shown = bind::r_progress(progress);
    std::vector<SharedEdges> parts;
    try {
      parts = shared_neighbours(sets_from(index), kind_of(type), least, most,
                                num_threads, shown.get());
    } catch (const TooManyPairs& e) {
      return Rcpp::List::create(Rcpp::_["failure"] = "too_many_pairs",
                                Rcpp::_["message"] = e.what());
    }
    return Rcpp::List::create(
        Rcpp::_["from"] =
            joined<Rcpp::IntegerVector>(parts, &SharedEdges::from),
        Rcpp::_["to"] = joined<Rcpp::IntegerVector>(parts, &SharedEdges::to),
        Rcpp::_["similarity"] =
            joined<Rcpp::NumericVector>(parts, &SharedEdges::similarity));
  });
}
