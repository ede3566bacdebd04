#include <numeric>

#include "bind_common.hpp"
#include "core/base/poll.hpp"
#include "core/graph/cut.hpp"
#include "core/graph/spanning.hpp"
#include "cpu/search/outside.hpp"

using namespace fsknn;

namespace {

/// Converts points x k matrices of R (rows of NA: points left out) to lists.
NearLists lists_from(const Rcpp::IntegerMatrix& index,
                     const Rcpp::NumericMatrix& distance) {
  const std::int64_t n = index.nrow(), k = index.ncol();
  NearLists lists;
  lists.start.assign(static_cast<std::size_t>(n) + 1, 0);
  for (std::int64_t i = 0; i < n; ++i)
    lists.start[static_cast<std::size_t>(i) + 1] =
        lists.start[static_cast<std::size_t>(i)] +
        (index[i] == NA_INTEGER ? 0 : k);
  lists.index = Buffer<std::int32_t>(lists.start.back());
  lists.distance = Buffer<double>(lists.start.back());
  for (std::int64_t i = 0; i < n; ++i) {
    if (lists.empty(static_cast<std::int32_t>(i))) continue;
    poll_after(20.0 * static_cast<double>(k));
    const std::int64_t to = lists.start[static_cast<std::size_t>(i)];
    for (std::int64_t r = 0; r < k; ++r) {
      lists.index[to + r] = index[r * n + i] - 1;
      lists.distance[to + r] = distance[r * n + i];
    }
  }
  return lists;
}

/// The neighbours of every point among undirected edges, nearest first.
NearLists lists_from(std::int64_t n, const std::vector<TreeEdge>& edges) {
  NearLists lists;
  lists.start.assign(static_cast<std::size_t>(n) + 1, 0);
  for (const TreeEdge& e : edges)
    for (const std::int32_t i : {e.low, e.high})
      ++lists.start[static_cast<std::size_t>(i) + 1];
  std::partial_sum(lists.start.begin(), lists.start.end(), lists.start.begin());
  lists.index = Buffer<std::int32_t>(lists.start.back());
  lists.distance = Buffer<double>(lists.start.back());
  std::vector<std::int64_t> next(lists.start.begin(), lists.start.end() - 1);
  // Edges are in order of length, so each list is also in order.
  for (const TreeEdge& e : edges) {
    poll_after(100.0);
    std::int64_t& low = next[static_cast<std::size_t>(e.low)];
    std::int64_t& high = next[static_cast<std::size_t>(e.high)];
    lists.index[low] = e.high;
    lists.distance[low++] = e.distance;
    lists.index[high] = e.low;
    lists.distance[high++] = e.distance;
  }
  return lists;
}

Rcpp::LogicalVector kept_of(const Cut& cut) {
  return Rcpp::LogicalVector(cut.kept.begin(), cut.kept.end());
}
Rcpp::IntegerVector clusters_of(const Cut& cut) {
  return bind::one_based(cut.cluster);
}

}  // namespace

// index, distance: the points' nearest, as from cpp_knn_search(). most: the
// largest number of neighbours that count.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_mst_knn(SEXP x, Rcpp::IntegerMatrix index,
                       Rcpp::NumericMatrix distance, int most,
                       Rcpp::List request) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress =
        bind::r_progress(Rcpp::as<bool>(request["progress"]), "Spanning tree");
    const std::unique_ptr<RowSource> source = bind::row_source(x, request);
    const Request asked = bind::request_from(request);
    const NearLists lists = lists_from(index, distance);
    const cpu::ExactPoints exact(asked, *source, progress.get());
    cpu::OutsideSearch outside(exact, asked, progress.get());
    const std::vector<TreeEdge> tree = spanning_tree(lists, outside);
    const Cut cut = cut_forest(tree, lists, most, &exact, asked.num_threads,
                               progress.get());
    const R_xlen_t size = static_cast<R_xlen_t>(tree.size());
    Rcpp::IntegerVector from(size), to(size);
    Rcpp::NumericVector length(size);
    Rcpp::NumericVector r(Rcpp::as<bool>(request["correlation"]) ? size : 0);
    for (R_xlen_t e = 0; e < size; ++e) {
      const TreeEdge& edge = tree[static_cast<std::size_t>(e)];
      from[e] = edge.low + 1;
      to[e] = edge.high + 1;
      length[e] = edge.distance;
      if (r.size() > 0) r[e] = exact.correlation(edge);
      poll_after(200.0 + static_cast<double>(source->num_features()));
    }
    return Rcpp::List::create(
        Rcpp::_["from"] = from, Rcpp::_["to"] = to,
        Rcpp::_["distance"] = length, Rcpp::_["correlation"] = r,
        Rcpp::_["kept"] = kept_of(cut), Rcpp::_["cluster"] = clusters_of(cut),
        Rcpp::_["passes"] = outside.passes(),
        Rcpp::_["pairs_filtered"] = outside.counts().filtered,
        Rcpp::_["pairs_pruned"] = outside.counts().pruned);
  });
}

// low, high, distance: undirected edges, shortest first; in_forest: whether
// they belong to the forest.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_cut_forest(int num_points, Rcpp::IntegerVector low,
                          Rcpp::IntegerVector high,
                          Rcpp::NumericVector distance,
                          Rcpp::LogicalVector in_forest, int most) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    std::vector<TreeEdge> edges, forest;
    edges.reserve(static_cast<std::size_t>(low.size()));
    for (R_xlen_t e = 0; e < low.size(); ++e) {
      edges.push_back(edge_between(distance[e], low[e] - 1, high[e] - 1));
      if (in_forest[e]) forest.push_back(edges.back());
    }
    const Cut cut = cut_forest(forest, lists_from(num_points, edges), most,
                               nullptr, 1, progress.get());
    return Rcpp::List::create(Rcpp::_["kept"] = kept_of(cut),
                              Rcpp::_["cluster"] = clusters_of(cut));
  });
}
