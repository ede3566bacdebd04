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

/// The scanner of tables of alleles, which have no other search; for other
/// metrics the given one.
MakeTripleScanner scanner_for(const Request& request,
                              const MakeTripleScanner& given);

struct TriplesFound {
  std::vector<Triple> triples;  ///< in order
  std::vector<TriplePairs> pairs;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// The expected cost and result of a search, from a sample of the points.
struct TripleForecast {
  TriplePath path = TriplePath::all;
  double sampled = 0;       ///< number of sampled points; 0: too few to sample
  double pairs = 1;         ///< share of its pairs that triples can have
  double all = 0;           ///< number of triples in question
  double triples = -1;      ///< estimated number of these; -1: unknown
  double sample_found = 0;  ///< number of these in the sample
  double comparisons = 0;   ///< number of features of triples to compare
};

/// A search that is prepared once and then finds parts of its answer.
class TripleSearch {
 public:
  /// Ignores the question's `most`. scanner: see MakeTripleScanner.
  TripleSearch(const Request& request, const TripleQuestion& question,
               const RowSource& source, Progress* progress,
               const MakeTripleScanner& scanner = {});
  ~TripleSearch();

  /// The part to find: see TripleShare.
  struct Part {
    double part = 0, parts = 1;
    /// The number of triples for which there is room.
    double most = std::numeric_limits<double>::infinity();
    /// Whether to fail at once if there are more, without counting them all.
    bool stops = false;
    /// Whether the pairs' values are wanted, too.
    bool with_pairs = true;
    /// Whether to sort by owner first, so that parts follow one another.
    bool by_owner = false;
  };
  /// Throws TooManyTriples.
  TriplesFound find(const Part& part, Progress* progress) const;
  TripleForecast forecast() const;
  /// Whether the metric is a table of alleles.
  bool is_table() const;

 private:
  struct Prepared;
  std::unique_ptr<Prepared> prepared_;
};

/// Finds all triples of at least the question's similarity. Throws
/// TooManyTriples.
TriplesFound find_triples(const Request& request,
                          const TripleQuestion& question,
                          const RowSource& points, Progress* progress);

/// A triple of a point: its two other points, the lower first.
struct TripleOfPoint {
  std::int32_t second, third;  ///< from 0
  double similarity;
  int entry = -1;  ///< TableEntry::which of the point, second and third
};

struct NearestTriples {
  /// [requested points], sorted by decreasing similarity, then second, then
  /// third.
  std::vector<std::vector<TripleOfPoint>> lists;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// Finds the request's k triples of each point (of `contains`, in its order, or
/// of all points).
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

/// breaks: ascending, two or more; the last bin includes its upper end. Only
/// the stage of `question` is read. part, parts: see TripleShare.
TripleCounts count_triples(const Request& request,
                           const std::vector<double>& breaks,
                           const TripleQuestion& question, double part,
                           double parts, const RowSource& points,
                           Progress* progress,
                           const MakeTripleScanner& scanner = {});

}  // namespace cpu
}  // namespace fsknn
