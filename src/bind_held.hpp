#pragma once

// Points that R holds by a handle, to search them many times.

#include <memory>

#include "bind_common.hpp"
#include "core/search/within.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace bind {

/// Backends prepare such points once. They prepare them again only if a request
/// differs from the previous one in the metric, weights, covariates, features
/// or the points left out.
class Held {
 public:
  /// x: data as for row_source(), which must not change. request: determines
  /// whether missing values are filled.
  Held(SEXP x, const Rcpp::List& request);
  ~Held();

  /// Restricts later searches to these features, as from features_of(). Returns
  /// the points with them, valid until the next choice.
  const RowSource& choose_features(const std::vector<std::int32_t>& features);
  /// Whether this process made it. A fork cannot use its parent's GPUs or
  /// threads.
  bool is_ours() const;

  /// The memory that the points take where they are prepared, besides the data.
  double bytes_on_cpu() const;
  std::vector<cuda::HeldPoints::BytesOn> bytes_on_gpus() const;

  // These replace weights and covariates of the request by equal ones that the
  // points were prepared with.

  void find_neighbours(bool on_gpu, Request& request, const RowSource* queries,
                       const Neighbours& out, Progress* progress, Stats* stats);
  void find_within(bool on_gpu, Request& request, const Within& within,
                   const RowSource* queries, WithinAnswer& answer,
                   Progress* progress, Stats* stats);

 private:
  struct Backends;
  void prepare_for(bool on_gpu, Request& request, const RowSource* queries);

  const long process_;
  const SEXP x_;
  const bool fill_;
  std::vector<std::int32_t> features_;
  std::unique_ptr<RowSource> source_;
  /// The features in use; null: all, or source_ has only these.
  std::unique_ptr<FeatureSubset> some_;
  std::unique_ptr<Backends> backends_;
};

/// The points of a handle; null if `x` is not a handle. Throws HandleFailure if
/// they cannot be used here.
Held* held_points(SEXP x);

struct HandleFailure : Failure {
  enum class Why {
    gone,      ///< it holds nothing of this process
    forked,    ///< it belongs to the parent process
    pairwise,  ///< a search over common samples was requested
  };
  explicit HandleFailure(Why which)
      : Failure("held points cannot be used"), why(which) {}
  Why why;
};

}  // namespace bind
}  // namespace fsknn
