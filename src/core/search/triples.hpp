#pragma once

// Triples of points by three-way Proportional Similarity (Joubert et al. 2018):
// what is asked for, the answer by definition, and the bounds by which a search
// may leave triples out. The vignette "proofs" proves them.

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

/// Three points by their numbers from 0, ascending.
struct Triple {
  std::int32_t from, to, third;
  double similarity;
};

inline bool operator<(const Triple& a, const Triple& b) {
  if (a.from != b.from) return a.from < b.from;
  if (a.to != b.to) return a.to < b.to;
  return a.third < b.third;
}

/// How triples are looked for; the answer is the same.
enum class TriplePath {
  automatic,
  pairs,  ///< triangles of the graph of pairs that are alike enough
  all     ///< each by itself
};

/// What is asked for besides the Request (whose k is not read).
struct TripleQuestion {
  double least = 0.0;  ///< similarity
  /// Only triples with at least one of these points; empty: all.
  std::vector<std::int32_t> contains;
  /// This part, from 0, of so many that have each triple once between them.
  std::int64_t stage = 0, stages = 1;
  TriplePath path = TriplePath::automatic;
  /// Triples that there is room for.
  double most = std::numeric_limits<double>::infinity();
};

/// What the work was like; never part of the answer.
struct TripleStats {
  TriplePath path = TriplePath::all;
  double triples = 0;      ///< found
  double candidates = 0;   ///< that a filter let pass
  double settled = 0;      ///< of which the exact step was made
  double comparisons = 0;  ///< features of triples that were looked at
  double seconds = 0;
  /// Points of the sample that the path was chosen by, and the share of its
  /// pairs that such triples can have.
  double sampled = 0, sample_pairs = 1;
  void add(const TripleStats& part) {
    triples += part.triples;
    candidates += part.candidates;
    settled += part.settled;
    comparisons += part.comparisons;
  }
};

/// More triples than there is room for.
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
  double fits;  ///< a threshold with room for all; infinity: none
};

/// Of a tally of 1 - similarity: a threshold that no more than `most` reach.
double threshold_that_fits(const DistanceTally& tally, double most);

/// The triple's part of a checksum: such parts are added, modulo 2^64.
std::uint64_t checksum_of(const Triple& triple);

/// The same of a number of triples in a bin.
std::uint64_t checksum_of(std::int64_t bin, double count);

/// Rows in places of their own order, and whether they are wide data.
PreparedPoints prepare_triples(const Request& request, const RowSource& points,
                               RowKernel kernel, int num_threads,
                               Progress* progress);

/// A triple by places that ascend.
inline Triple triple_at(const PreparedPoints& points, std::int64_t a,
                        std::int64_t b, std::int64_t c, double similarity) {
  return {points.order.id_at(Place{a}).value,
          points.order.id_at(Place{b}).value,
          points.order.id_at(Place{c}).value, similarity};
}

/// What pairs say of a triple.
struct TriplePairs {
  double from_to, from_third, to_third;  ///< their similarities
  double at_least, at_most;
};

/// sums: sum min of from and to, from and third, to and third.
TriplePairs pairs_of(const MetricEntry& metric, const PreparedPoints& points,
                     const Triple& triple, const double* sums);

/// Which of the triples with a point (in contains, by places) is counted for
/// which: that of the lowest place. -1 of a point that is none of them.
class TripleOwners {
 public:
  TripleOwners(const PreparedPoints& points,
               const std::vector<std::int32_t>& contains);
  bool all() const { return all_; }
  /// [points] whether they own triples; empty: all do.
  std::vector<char> contained() const {
    return all_ ? std::vector<char>() : contained_;
  }
  /// Those that own triples, ascending.
  const std::vector<std::int64_t>& apexes() const { return apexes_; }
  /// Whether the triples of `apex` that have `other` are its own.
  bool has(std::int64_t apex, std::int64_t other) const {
    if (other == apex) return false;
    return other > apex ||
           (!all_ && !contained_[static_cast<std::size_t>(other)]);
  }
  /// Of places that ascend; -1: none of them owns it.
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

/// Which stage does number `at` of work that gets less from one to the next:
/// there and back again, so that all have as much.
constexpr bool is_in_stage(std::int64_t at, std::int64_t stage,
                           std::int64_t stages) {
  const std::int64_t turn = at / stages, rest = at % stages;
  return (turn % 2 == 0 ? rest : stages - 1 - rest) == stage;
}

/// Points of which one stage does all, or none: of the lower of the two others.
constexpr std::int64_t kStageBlock = 16;

/// Whether the triples of an apex with `lower` (of the other two, by places)
/// are the stage's.
inline bool is_in_stage(const TripleOwners& owners, const TripleQuestion& q,
                        std::int64_t apex, std::int64_t lower) {
  return is_in_stage(owners.all() ? apex : lower / kStageBlock, q.stage,
                     q.stages);
}

/// Triples of an apex whose lower other is at a place in [begin, end).
struct TripleApex {
  std::int64_t apex, begin, end;
  double least;  ///< similarity
};

/// What is looked for: of a stage the triples of one stretch. All triples are
/// in order of their apex, then of the lower of its other two, and cut into
/// stretches of as many each; those of one apex and lower are never parted.
class TripleShare {
 public:
  /// Stretch `part`, from 0, of so many. Both arguments must outlive it.
  TripleShare(const TripleOwners& owners, const TripleQuestion& question,
              std::int64_t num_points, double part = 0, double parts = 1);
  const TripleOwners& owners() const { return *owners_; }
  /// Whether it has triples of that apex, as far as that tells.
  bool has_apex(std::int64_t apex) const {
    return apex >= begin_.apex && apex <= end_.apex &&
           (!owners_->all() || is_in_stage(*owners_, *question_, apex, 0));
  }
  bool has(std::int64_t apex, std::int64_t lower) const {
    const Row row = {apex, lower};
    return !is_before(row, begin_) && is_before(row, end_) &&
           is_in_stage(*owners_, *question_, apex, lower);
  }
  /// The same of a triple by places that ascend.
  bool has(std::int64_t a, std::int64_t b, std::int64_t c) const {
    const std::int64_t apex = owners_->owner_of(a, b, c);
    return apex >= 0 && has(apex, apex == a ? b : a);
  }
  /// Those that may have triples of it.
  std::vector<std::int64_t> apexes() const;
  /// The same with the stretch of their lowers, of which a stage of a question
  /// that has `contains` is only a part.
  std::vector<TripleApex> parts(std::int64_t num_points, double least) const;

 private:
  struct Row {
    std::int64_t apex, lower;
  };
  static bool is_before(const Row& a, const Row& b) {
    return a.apex != b.apex ? a.apex < b.apex : a.lower < b.lower;
  }
  /// Before it is that share of the triples.
  Row cut_at(double share, std::int64_t num_points) const;
  const TripleOwners* owners_;
  const TripleQuestion* question_;
  Row begin_, end_;
};

/// The bounds that similarities of at least `least` (as they are computed) put
/// on sums of largest values.
struct TripleBound {
  TripleBound(double least, std::int64_t padded);
  /// sum max is at most this share of the total; infinity: no bound.
  double share;
  /// The third row's sum is at most this share of the other two's, unless below
  /// kNearlyEmpty; infinity: no bound.
  double third;
  /// No pair of such a triple has a distance above, where no row is nearly
  /// empty.
  double pair_distance;
};

/// Below, rounding to subnormal numbers is no longer small beside a row's sum.
constexpr double kNearlyEmpty = 0x1p-960;

/// Places of rows whose sums are below.
std::vector<std::int64_t> nearly_empty_rows(const PreparedPoints& points);

/// The answers by definition.
std::vector<Triple> brute_triples(const Request& request,
                                  const TripleQuestion& question,
                                  const RowSource& points);

}  // namespace fsknn
