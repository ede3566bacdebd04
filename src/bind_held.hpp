#pragma once

// Points that R holds by a handle, to search them many times.

#include <memory>

#include "bind_common.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace bind {

/// Backends prepare such points once, and again only where a request has
/// another metric, other weights or covariates, other features or other points
/// left out than the one before.
class Held {
 public:
  /// x: what row_source() takes; it must stay as it is. request: says whether
  /// missing values are filled.
  Held(SEXP x, const Rcpp::List& request);
  ~Held();

  /// Searches from here on are of these features, as features_of() has them.
  /// Gives the points by them, until others are chosen.
  const RowSource& choose_features(const std::vector<std::int32_t>& features);
  /// Whether it was made by this process: a fork can use neither its parent's
  /// GPUs nor its threads.
  bool is_ours() const;

  // request: changed to what the points were prepared for.

  void find_neighbours(bool on_gpu, Request& request, const RowSource* queries,
                       const Neighbours& out, Progress* progress, Stats* stats);
  void find_within(bool on_gpu, Request& request, const Within& within,
                   const RowSource* queries, WithinAnswer& answer,
                   Progress* progress, Stats* stats);

 private:
  struct Backends;
  void prepare_for(bool on_gpu, Request& request);

  const long process_;
  const SEXP x_;
  const bool fill_;
  std::vector<std::int32_t> features_;
  std::unique_ptr<RowSource> source_;
  /// The features of it that count; null: all, or they are made by them alone.
  std::unique_ptr<FeatureSubset> some_;
  std::unique_ptr<Backends> backends_;
};

/// Of a handle; null where `x` is none. Throws HandleFailure where it holds
/// nothing that can be used here.
Held* held_points(SEXP x);

struct HandleFailure : Failure {
  enum class Why {
    gone,      ///< it holds nothing that is of this process
    forked,    ///< what it holds is the parent's
    pairwise,  ///< a search over common samples was asked for
  };
  explicit HandleFailure(Why which)
      : Failure("held points cannot be used"), why(which) {}
  Why why;
};

}  // namespace bind
}  // namespace fsknn
