#pragma once

// Triples of points by three-way Proportional Similarity (Joubert et al. 2018),
// or by tables of alleles: the question, the answer by definition, and the
// bounds by which a search may prune triples of the former. The vignette
// "proofs" proves them.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/contract/request.hpp"
#include "core/contract/triple_sums.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"
#include "core/search/within.hpp"

namespace fsknn {

/// Three points by their ids, ascending.
struct Triple {
  std::int32_t from, to, third;
  double similarity;
};

inline bool operator<(const Triple& a, const Triple& b) {
  if (a.from != b.from) return a.from < b.from;
  if (a.to != b.to) return a.to < b.to;
  return a.third < b.third;
}

/// The search method; the answer is the same.
enum class TriplePath {
  automatic,
  pairs,  ///< triangles of the graph of similar enough pairs
  all     ///< each triple separately
};

/// The parameters besides the Request (whose k is ignored).
struct TripleQuestion {
  double least = 0.0;  ///< least similarity
  /// Only triples with at least one of these points; empty: all.
  std::vector<std::int32_t> contains;
  /// Part `stage`, from 0, of `stages` that have each triple once in total.
  std::int64_t stage = 0, stages = 1;
  TriplePath path = TriplePath::automatic;
  /// The number of triples that fit.
  double most = std::numeric_limits<double>::infinity();
};

/// Statistics of the work; never part of the answer.
struct TripleStats {
  TriplePath path = TriplePath::all;
  double triples = 0;      ///< found
  double candidates = 0;   ///< triples that a filter let pass
  double reranked = 0;     ///< candidates that the exact step computed
  double comparisons = 0;  ///< features of triples that were compared
  double seconds = 0;
  /// The points of the sample that the path was chosen by, and the share of its
  /// pairs that can be in similar enough triples.
  double sampled = 0, sample_pairs = 1;
  void add(const TripleStats& part) {
    triples += part.triples;
    candidates += part.candidates;
    reranked += part.reranked;
    comparisons += part.comparisons;
  }
};

/// There are more triples than fit.
struct TooManyTriples : Failure {
  TooManyTriples(double count, bool is_estimate, double room, double threshold)
      : Failure("too many triples are that similar"),
        triples(count),
        estimated(is_estimate),
        most(room),
        fits(threshold) {}
  double triples;
  bool estimated;
  double most;
  double fits;  ///< a threshold for which all fit; infinity: none
};

/// From a tally of 1 - similarity: a threshold that at most `most` reach.
double threshold_that_fits(const DistanceTally& tally, double most);

/// The triple's part of a checksum, which is the sum of these modulo 2^64.
std::uint64_t checksum_of(const Triple& triple);

/// The same for the number of triples in a bin.
std::uint64_t checksum_of(std::int64_t bin, double count);

/// Prepares rows in the user's order, and notes whether they are wide data.
PreparedPoints prepare_triples(const Request& asked, const RowSource& source,
                               RowKernel kernel, int num_threads,
                               Progress* progress);

/// A triple from ascending places.
inline Triple triple_at(const PreparedPoints& points, std::int64_t a,
                        std::int64_t b, std::int64_t c, double similarity) {
  return {points.order.id_at(Place{a}).value,
          points.order.id_at(Place{b}).value,
          points.order.id_at(Place{c}).value, similarity};
}

/// The metric for points of a request, whose number of samples is known.
inline MetricEntry metric_of(const Request& request,
                             const PreparedPoints& points) {
  return request.metric->is_table()
             ? for_samples(*request.metric, points.num_features)
             : *request.metric;
}

/// The largest entry of a table of alleles.
struct TableEntry {
  double similarity;
  int which;  ///< AlleleTable::similarity_of_three()
};

/// The table of three points by their places.
TableEntry table_of_three(const MetricEntry& metric,
                          const PreparedPoints& points, std::int64_t a,
                          std::int64_t b, std::int64_t c);

/// The bin of a similarity: 0 is below all bins, 1 the first bin.
std::size_t bin_of(const std::vector<double>& breaks, double similarity);

/// The pairs of a triple, and the bounds from them.
struct TriplePairs {
  double from_to, from_third, to_third;  ///< their similarities
  double at_least, at_most;              ///< NaN for tables of alleles
  int entry = -1;                        ///< TableEntry::which
};

/// sums: sums of a pair's metric of from and to, of from and third, and of to
/// and third.
TriplePairs pairs_of(const MetricEntry& metric, const PreparedPoints& points,
                     const Triple& triple, const double* sums);

/// Assigns triples to owners. With `contains` (by places), a triple belongs to
/// its lowest place in it; without, to its lowest place.
class TripleOwners {
 public:
  TripleOwners(const PreparedPoints& points,
               const std::vector<std::int32_t>& contains);
  bool all() const { return all_; }
  /// [points] whether they own triples; empty: all do.
  std::vector<char> contained() const {
    return all_ ? std::vector<char>() : contained_;
  }
  /// Points that own triples, ascending.
  const std::vector<std::int64_t>& apexes() const { return apexes_; }
  /// Whether the triples of `apex` with `other` belong to `apex`.
  bool has(std::int64_t apex, std::int64_t other) const {
    if (other == apex) return false;
    return other > apex ||
           (!all_ && !contained_[static_cast<std::size_t>(other)]);
  }
  /// The owner for ascending places; -1: none.
  std::int64_t owner_of(std::int64_t a, std::int64_t b, std::int64_t c) const {
    if (all_) return a;
    for (const std::int64_t p : {a, b, c})
      if (contained_[static_cast<std::size_t>(p)]) return p;
    return -1;
  }

 private:
  bool all_;
  std::vector<std::int64_t> apexes_;
  std::vector<char> contained_;
};

/// Whether `stage` does number `at` of work that decreases from one number to
/// the next. Stages alternate in direction, so that all get equal work.
constexpr bool is_in_stage(std::int64_t at, std::int64_t stage,
                           std::int64_t stages) {
  const std::int64_t turn = at / stages, rest = at % stages;
  return (turn % 2 == 0 ? rest : stages - 1 - rest) == stage;
}

/// Points that belong to the same stage, as the lower of the two others.
constexpr std::int64_t kStageBlock = 16;

/// Whether the triples of an apex with `lower` (of the other two, by places)
/// belong to the stage.
inline bool is_in_stage(const TripleOwners& owners, const TripleQuestion& q,
                        std::int64_t apex, std::int64_t lower) {
  return is_in_stage(owners.all() ? apex : lower / kStageBlock, q.stage,
                     q.stages);
}

/// Triples of an apex whose lower other has a place in [begin, end).
struct TripleApex {
  std::int64_t apex, begin, end;
  double least;  ///< least similarity
};

/// The triples of a search: those of a stage that are in one range. All triples
/// are ordered by apex, then by the lower of the other two, and cut into ranges
/// of equal size. Triples with the same apex and lower are never separated.
class TripleShare {
 public:
  /// Range `part`, from 0, of `parts`. Both references must outlive this.
  TripleShare(const TripleOwners& owners, const TripleQuestion& question,
              std::int64_t num_points, double part = 0, double parts = 1);
  const TripleOwners& owners() const { return *owners_; }
  /// Whether it may have triples of that apex.
  bool has_apex(std::int64_t apex) const {
    return apex >= begin_.apex && apex <= end_.apex &&
           (!owners_->all() || is_in_stage(*owners_, *question_, apex, 0));
  }
  bool has(std::int64_t apex, std::int64_t lower) const {
    const Row row = {apex, lower};
    return !is_before(row, begin_) && is_before(row, end_) &&
           is_in_stage(*owners_, *question_, apex, lower);
  }
  /// The same for a triple by ascending places.
  bool has(std::int64_t a, std::int64_t b, std::int64_t c) const {
    const std::int64_t apex = owners_->owner_of(a, b, c);
    return apex >= 0 && has(apex, apex == a ? b : a);
  }
  /// Apexes that may have triples in it.
  std::vector<std::int64_t> apexes() const;
  /// The same with the range of their lowers. With `contains`, a stage has only
  /// some of these.
  std::vector<TripleApex> parts(std::int64_t num_points, double least) const;

 private:
  struct Row {
    std::int64_t apex, lower;
  };
  static bool is_before(const Row& a, const Row& b) {
    return a.apex != b.apex ? a.apex < b.apex : a.lower < b.lower;
  }
  /// The first triple after this share of all.
  Row cut_at(double share, std::int64_t num_points) const;
  const TripleOwners* owners_;
  const TripleQuestion* question_;
  Row begin_, end_;
};

/// Bounds on sums of largest values that follow from computed similarities of
/// at least `least`.
struct TripleBound {
  TripleBound(double least, std::int64_t padded);
  /// sum max is at most this share of the total; infinity: no bound.
  double share;
  /// The third row's sum is at most this share of the other two's, unless it is
  /// below kNearlyEmpty; infinity: no bound.
  double third;
  /// No pair of such a triple has a larger distance, if no row is nearly empty.
  double pair_distance;
};

/// Below this, rounding to subnormal numbers is not small relative to a row's
/// sum.
constexpr double kNearlyEmpty = 0x1p-960;

/// The places of rows whose sums are below kNearlyEmpty.
std::vector<std::int64_t> nearly_empty_rows(const PreparedPoints& points);

/// The answers by definition.
std::vector<Triple> brute_triples(const Request& request,
                                  const TripleQuestion& question,
                                  const RowSource& points);

}  // namespace fsknn
