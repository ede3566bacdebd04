#pragma once

// Triples of points on the CPU.

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/triple_scanner.hpp"
#include "core/search/triples.hpp"

namespace fsknn {
namespace cpu {

struct TriplesFound {
  std::vector<Triple> triples;  ///< in order
  std::vector<TriplePairs> pairs;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// What a search will be like, by a sample of the points.
struct TripleForecast {
  TriplePath path = TriplePath::all;
  double sampled = 0;       ///< points of the sample; 0: too few for one
  double pairs = 1;         ///< share of its pairs that triples can have
  double all = 0;           ///< triples that are asked of
  double triples = -1;      ///< of them as similar, roughly; -1: no one knows
  double sample_found = 0;  ///< of which so many are in the sample
  double comparisons = 0;   ///< features of triples that are to be looked at
};

/// A search that is prepared once, and asked for parts of its answer.
class TripleSearch {
 public:
  /// The question's `most` is not read. scanner: see MakeTripleScanner.
  TripleSearch(const Request& request, const TripleQuestion& question,
               const RowSource& source, Progress* progress,
               const MakeTripleScanner& scanner = {});
  ~TripleSearch();

  /// What to find: see TripleShare.
  struct Part {
    double part = 0, parts = 1;
    /// Triples that there is room for.
    double most = std::numeric_limits<double>::infinity();
    /// More are a failure at once, and are not counted to the end.
    bool stops = false;
    /// What the pairs say of them is wanted, too.
    bool with_pairs = true;
    /// In order of their owners first, so that parts follow one another.
    bool by_owner = false;
  };
  /// Throws TooManyTriples.
  TriplesFound find(const Part& part, Progress* progress) const;
  TripleForecast forecast() const;

 private:
  struct Prepared;
  std::unique_ptr<Prepared> prepared_;
};

/// All triples of at least that similarity. Throws TooManyTriples.
TriplesFound find_triples(const Request& request,
                          const TripleQuestion& question,
                          const RowSource& points, Progress* progress);

/// Of a point: the others of a triple, the lower first.
struct TripleOfPoint {
  std::int32_t second, third;  ///< from 0
  double similarity;
};

struct NearestTriples {
  /// [points that are asked for] by similarity, the largest first, second,
  /// third.
  std::vector<std::vector<TripleOfPoint>> lists;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// The request's k triples of each point (of `contains`, in its order, or all).
NearestTriples nearest_triples(const Request& request,
                               const std::vector<std::int32_t>& contains,
                               TriplePath path, const RowSource& points,
                               Progress* progress,
                               const MakeTripleScanner& scanner = {});

struct TripleCounts {
  std::vector<double> counts;  ///< of the bins [breaks[i], breaks[i + 1])
  double below = 0, above = 0;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// breaks: ascending, two or more; the last bin has its upper end too.
/// question: its stage alone is read. part, parts: see TripleShare.
TripleCounts count_triples(const Request& request,
                           const std::vector<double>& breaks,
                           const TripleQuestion& question, double part,
                           double parts, const RowSource& points,
                           Progress* progress,
                           const MakeTripleScanner& scanner = {});

}  // namespace cpu
}  // namespace fsknn
