// Diffusion maps: joins neighbours to a graph, and computes the random walk on
// it and its products.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "bind_common.hpp"
#include "core/graph/diffusion.hpp"
#include "core/graph/joined.hpp"

using namespace fsknn;

namespace {

/// Converts matrices of numbers from 1 and distances, one row per point, or
/// lists of such vectors. Missing entries are dropped.
NearLists lists_from(SEXP index, SEXP distance) {
  NearLists lists;
  lists.start.push_back(0);
  const auto fill = [&](std::int64_t rows, auto size_of, auto at) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t size = 0;
      for (std::int64_t r = 0; r < size_of(i); ++r)
        size += at(i, r).first != NA_INTEGER;
      lists.start.push_back(lists.start.back() + size);
    }
    lists.index = Buffer<std::int32_t>(lists.start.back());
    lists.distance = Buffer<double>(lists.start.back());
    std::int64_t to = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t r = 0; r < size_of(i); ++r) {
        const std::pair<int, double> found = at(i, r);
        if (found.first == NA_INTEGER) continue;
        lists.index[to] = found.first - 1;
        lists.distance[to++] = found.second;
      }
    }
  };
  if (TYPEOF(index) == VECSXP) {
    fill(
        Rf_xlength(index),
        [&](std::int64_t i) { return Rf_xlength(VECTOR_ELT(index, i)); },
        [&](std::int64_t i, std::int64_t r) {
          return std::make_pair(INTEGER(VECTOR_ELT(index, i))[r],
                                REAL(VECTOR_ELT(distance, i))[r]);
        });
    return lists;
  }
  const std::int64_t n = Rf_nrows(index), k = Rf_ncols(index);
  const int* const numbers = INTEGER(index);
  const double* const lengths = REAL(distance);
  fill(
      n, [&](std::int64_t) { return k; },
      [&](std::int64_t i, std::int64_t r) {
        return std::make_pair(numbers[r * n + i], lengths[r * n + i]);
      });
  return lists;
}

template <class T>
T& behind(SEXP pointer) {
  return *Rcpp::XPtr<T>(pointer).checked_get();
}

/// Takes over the lists of cpp_room_for_lists(), or calls lists_from().
NearLists take_lists(SEXP index, SEXP distance) {
  if (TYPEOF(index) != EXTPTRSXP) return lists_from(index, distance);
  return std::move(behind<NearLists>(index));
}

/// The smallest positive and the largest length among each point's own
/// neighbours; NA if there is none.
struct Ends {
  Rcpp::NumericVector nearest, farthest;
};

Ends ends_of(const NearLists& lists, const JoinedGraph& graph) {
  const std::int64_t n = graph.num_points();
  Ends ends = {Rcpp::NumericVector(n, NA_REAL),
               Rcpp::NumericVector(n, NA_REAL)};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t* const row = graph.index.data() + graph.row(i);
    const std::int32_t* const end = graph.index.data() + graph.row(i + 1);
    const std::size_t at = static_cast<std::size_t>(i);
    for (std::int64_t e = lists.start[at]; e < lists.start[at + 1]; ++e) {
      const std::int32_t* const found =
          std::lower_bound(row, end, lists.index[e]);
      if (found == end || *found != lists.index[e]) continue;
      const double u = graph.length[found - graph.index.data()];
      if (u > 0.0 && !(ends.nearest[i] <= u)) ends.nearest[i] = u;
      if (u > 0.0 && !(ends.farthest[i] >= u)) ends.farthest[i] = u;
    }
  }
  return ends;
}

/// The median of values that are not NA; 0 if there are none.
double median_of(const Rcpp::NumericVector& values) {
  std::vector<double> there;
  for (const double v : values)
    if (!std::isnan(v)) there.push_back(v);
  if (there.empty()) return 0.0;
  const auto middle =
      there.begin() + static_cast<std::ptrdiff_t>(there.size() / 2);
  std::nth_element(there.begin(), middle, there.end());
  return *middle;
}

/// Squares the ends, scaled by the unit. The results are clamped so that a
/// median, and that doubled several times, stays within double's range.
void square_ends(Ends& ends, int unit) {
  for (Rcpp::NumericVector* values : {&ends.nearest, &ends.farthest}) {
    for (double& v : *values) {
      const double a = std::ldexp(v, -unit);
      if (!std::isnan(v)) v = std::min(std::max(a * a, 0x1p-1000), 0x1p1000);
    }
  }
}

}  // namespace

// Room for `count` neighbours, which cpp_add_to_lists() fills row by row.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_room_for_lists(double count) {
  return bind::guarded([&] {
    std::unique_ptr<NearLists> lists(new NearLists);
    lists->start.push_back(0);
    lists->index = Buffer<std::int32_t>(static_cast<std::int64_t>(count));
    lists->distance = Buffer<double>(static_cast<std::int64_t>(count));
    return Rcpp::List::create(Rcpp::_["lists"] =
                                  Rcpp::XPtr<NearLists>(lists.release(), true));
  });
}

// Adds the next rows. Missing entries are dropped.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_add_to_lists(SEXP lists, Rcpp::IntegerMatrix index,
                            Rcpp::NumericMatrix distance) {
  return bind::guarded([&] {
    NearLists& all = behind<NearLists>(lists);
    std::int64_t to = all.start.back();
    if (index.size() != distance.size() ||
        index.size() - std::count(index.begin(), index.end(), NA_INTEGER) >
            all.index.size() - to)
      throw std::invalid_argument("each index has a distance, and room");
    for (int i = 0; i < index.nrow(); ++i) {
      for (int r = 0; r < index.ncol(); ++r) {
        if (index(i, r) == NA_INTEGER) continue;
        all.index[to] = index(i, r) - 1;
        all.distance[to++] = distance(i, r);
      }
      all.start.push_back(to);
    }
    return Rcpp::List();
  });
}

// The pairs of the graph, column by column: the upper triangle, as in a
// dsCMatrix. Consumes the lists.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_joined_triangle(SEXP lists, bool mutual, double most,
                               int num_threads) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> asked = bind::r_progress(false);
    try {
      const JoinedGraph graph = join_directions(
          take_lists(lists, R_NilValue),
          mutual ? JoinKind::both : JoinKind::either, num_threads, asked.get());
      const double pairs = 0.5 * static_cast<double>(graph.index.size());
      if (pairs > most) return Rcpp::List::create(Rcpp::_["pairs"] = pairs);
      const std::int64_t n = graph.num_points();
      Rcpp::IntegerVector row_of(Rcpp::no_init(static_cast<R_xlen_t>(pairs)));
      Rcpp::NumericVector values(Rcpp::no_init(row_of.size()));
      Rcpp::IntegerVector begins(n + 1);
      R_xlen_t to = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t e = graph.row(j); e < graph.row(j + 1); ++e) {
          if (graph.index[e] > j) break;
          row_of[to] = graph.index[e];
          values[to++] = graph.length[e];
        }
        begins[j + 1] = static_cast<int>(to);
      }
      return Rcpp::List::create(
          Rcpp::_["pairs"] = pairs, Rcpp::_["row_of"] = row_of,
          Rcpp::_["begins"] = begins, Rcpp::_["values"] = values);
    } catch (const RepeatedNeighbour& e) {
      return Rcpp::List::create(Rcpp::_["failure"] = "repeated",
                                Rcpp::_["message"] = e.what(),
                                Rcpp::_["point"] = e.point + 1);
    }
  });
}

// The graph with squared lengths. index: numbers from 1 with their distances,
// or the lists of cpp_room_for_lists(), which it consumes. local: the rank of
// the neighbour whose distance scales a point; 0: no scaling.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_join_neighbours(SEXP index, SEXP distance, bool mutual,
                               bool correlation, int local, int num_threads) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> asked = bind::r_progress(false);
    try {
      const NearLists lists = take_lists(index, distance);
      std::unique_ptr<JoinedGraph> graph(new JoinedGraph(
          join_directions(lists, mutual ? JoinKind::both : JoinKind::either,
                          num_threads, asked.get())));
      std::vector<double> scales;
      if (local > 0) {
        scales = local_scales(lists, *graph, local, num_threads);
        if (correlation)
          for (double& s : scales) s = std::sqrt(2.0 * s);
      }
      // Scaled lengths are scale-free, and 1 - r needs no unit.
      const bool plain = local == 0 && !correlation;
      Ends ends;
      int unit = 0;
      if (plain) {
        ends = ends_of(lists, *graph);
        const double nearest = median_of(ends.nearest);
        if (nearest > 0.0)
          unit = unit_of_lengths(nearest, median_of(ends.farthest));
        square_ends(ends, unit);
      }
      square_lengths(
          *graph, correlation ? LengthKind::correlation : LengthKind::distance,
          unit, scales, num_threads);
      if (!plain) ends = ends_of(lists, *graph);
      Rcpp::List out =
          Rcpp::List::create(Rcpp::_["nearest"] = ends.nearest,
                             Rcpp::_["farthest"] = ends.farthest,
                             Rcpp::_["unit"] = std::ldexp(1.0, unit));
      out["num_pairs"] = 0.5 * static_cast<double>(graph->index.size());
      out["scales"] = scales;
      out["graph"] = Rcpp::XPtr<JoinedGraph>(graph.release(), true);
      return out;
    } catch (const RepeatedNeighbour& e) {
      return Rcpp::List::create(Rcpp::_["failure"] = "repeated",
                                Rcpp::_["message"] = e.what(),
                                Rcpp::_["point"] = e.point + 1);
    }
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_kernel_sums(SEXP graph, std::vector<double> epsilon,
                           int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> asked = bind::r_progress(false);
    const std::vector<KernelSum> sums = kernel_sums(
        behind<JoinedGraph>(graph), epsilon, num_threads, asked.get());
    Rcpp::NumericVector kernel, moment;
    for (const KernelSum& sum : sums) {
      kernel.push_back(sum.kernel);
      moment.push_back(sum.moment);
    }
    return Rcpp::List::create(Rcpp::_["kernel"] = kernel,
                              Rcpp::_["moment"] = moment);
  });
}

// Consumes the graph.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_walk(SEXP graph, double epsilon, double alpha, int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> asked = bind::r_progress(false);
    JoinedGraph taken = std::move(behind<JoinedGraph>(graph));
    Rcpp::XPtr<JoinedGraph>(graph).release();
    std::unique_ptr<Walk> walk(
        new Walk(std::move(taken), epsilon, alpha, num_threads));
    Rcpp::List out = Rcpp::List::create(
        Rcpp::_["density"] = walk->density(),
        Rcpp::_["degree"] = walk->degree(),
        Rcpp::_["order"] = bind::one_based(walk->order()),
        Rcpp::_["first"] = Rcpp::NumericVector(walk->first_rows().begin(),
                                               walk->first_rows().end()));
    out["walk"] = Rcpp::XPtr<Walk>(walk.release(), true);
    return out;
  });
}

// component: from 1. degree, low, high: a filter (core/graph/diffusion.hpp).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_walk_apply(SEXP walk, int component, Rcpp::NumericVector x,
                          int degree, double low, double high,
                          int num_threads) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> asked = bind::r_progress(false);
    const Walk& steps = behind<Walk>(walk);
    if (x.size() != steps.num_rows(component - 1))
      throw Failure("a vector of another length than the component");
    ChebyshevFilter filter;
    filter.degree = degree;
    filter.low = low;
    filter.high = high;
    Rcpp::NumericVector out(Rcpp::no_init(x.size()));
    steps.apply(component - 1, filter, x.begin(), out.begin(), num_threads,
                asked.get());
    return Rcpp::List::create(Rcpp::_["product"] = out);
  });
}

// product becomes the next vector, so no other object may share it.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_lanczos_step(Rcpp::NumericVector product,
                            Rcpp::NumericVector now, Rcpp::NumericVector before,
                            double beside_before, int num_threads) {
  return bind::guarded([&] {
    if (now.size() != product.size() || before.size() != product.size())
      throw Failure("vectors of different lengths");
    const LanczosStep step =
        lanczos_step(product.begin(), now.begin(), before.begin(),
                     beside_before, product.size(), num_threads);
    return Rcpp::List::create(Rcpp::_["own"] = step.own,
                              Rcpp::_["beside"] = step.beside);
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_walk_dense(SEXP walk, int component) {
  return bind::guarded([&] {
    const Walk& steps = behind<Walk>(walk);
    const int rows = static_cast<int>(steps.num_rows(component - 1));
    const std::vector<double> all = steps.dense(component - 1);
    return Rcpp::List::create(Rcpp::_["matrix"] =
                                  Rcpp::NumericMatrix(rows, rows, all.begin()));
  });
}
