#pragma once

// The candidates of a filtered search: for each row the pairs that may still be
// among its k nearest, and the threshold that a further pair must reach.
//
// Points occupy slots: blocks of FilterTile::columns slots, in an odd number of
// blocks. The points are spread evenly, so that all blocks have nearly the same
// number. The remaining slots are padding: rows of zeros.
//
// Similarities are in the filter's units. Each is an upper bound of the pair's
// similarity or within an error of it: see Cut. Within that error they decrease
// as the contract's distance grows. A row's threshold is the k-th largest lower
// bound among its candidates. At least k of its pairs reach it, so no pair that
// the filter drops below it is a neighbour.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/numbers.hpp"
#include "core/contract/metric.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/limit_rule.hpp"
#include "cuda/exact/list_rules.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/plan/plan.hpp"

namespace fsknn {
namespace cuda {

struct Candidate {
  float similarity;
  std::int32_t slot;  ///< with kReranked: the pair's distance is computed
};
static constexpr std::uint32_t kReranked = 0x80000000u;
FSKNN_HD inline std::int32_t slot_of(const Candidate& candidate) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(candidate.slot) &
                                   ~kReranked);
}
FSKNN_HD inline bool is_reranked(const Candidate& candidate) {
  return candidate.slot < 0;
}

/// Lists of row slots, whose candidates are column slots; in a graph these are
/// the same slots. All pointers are device memory.
struct CandidateLists {
  Candidate* entries = nullptr;  ///< [num_slots x capacity], row-major
  /// [num_slots]; may exceed the capacity. kOverflowed: the list dropped its
  /// entries.
  std::int32_t* counts = nullptr;
  float* thresholds = nullptr;  ///< [num_slots]; infinity: accepts no more;
                                ///< NaN: padding
  /// [num_slots] or null. A row that will be recomputed leaves its certain
  /// threshold here, which the entries of its list justify. Every row does so
  /// where thresholds may be estimates.
  float* bounds = nullptr;
  const std::int32_t* places = nullptr;         ///< [num_slots]; -1: padding
  const std::int32_t* column_places = nullptr;  ///< [column slots]; -1: padding
  /// By place: the user's numbers of rows and columns. A pair of equal numbers
  /// is a point with itself and not a candidate. row_ids is null where rows and
  /// columns are different points. A row that is not among the columns has
  /// kNoPoint.
  const std::int32_t* row_ids = nullptr;
  const std::int32_t* column_ids = nullptr;
  std::int64_t num_slots = 0;
  std::int32_t capacity = 0;  ///< see kSmallestCapacity, kLargestCapacity
};

/// A capacity is a power of two between these, any number up to 128, or any
/// from 512 to 1,024.
static constexpr std::int32_t kSmallestCapacity = 256;
static constexpr std::int32_t kLargestCapacity = kMostCandidates;

/// Rows to recompute, in any order. Device memory.
struct RedoRows {
  std::int32_t* places = nullptr;  ///< [points]
  std::int32_t* count = nullptr;   ///< one number
  /// Points may occupy several slots: `places` receives slots instead.
  bool by_slot = false;
};
#ifdef __CUDACC__
__device__ inline void do_again(const RedoRows& redo, std::int32_t place,
                                std::int64_t slot) {
  redo.places[atomicAdd(redo.count, 1)] =
      redo.by_slot ? static_cast<std::int32_t>(slot) : place;
}
#endif

/// Estimated thresholds. Points are in random order, so that those compared
/// with a row so far are a fair sample, which has few of its k nearest. The
/// next threshold may therefore be that of the `rank` most similar so far. A
/// row is recomputed if its last threshold exceeds the certain one. The last
/// cut decides this or, where distances tell more, the exact step.
struct EstimateRule {
  bool may = false;       ///< in this pass, whose lists then have bounds
  std::int32_t rank = 0;  ///< below k; 0: no estimate after this round
  bool certain = true;    ///< the certain threshold is computed, too
  bool confirms = false;  ///< the last cut marks rows for recomputing
  /// This part of an entry's error is added to its lower bound.
  double error_part = 0.0;
};

/// The arguments of a cut, which shortens lists after a round. A candidate's
/// similarity is at least
/// entry.similarity - row_slack - column_slack - twice_error and at most
/// entry.similarity + twice_error / 2, all in the filter's units.
/// With sums, the slacks are divided by the sum of those of both rows; with
/// factors, they are multiplied by both factors. An error that is infinite or
/// NaN gives no bound: see least_similarity(). The entries that set a threshold
/// come first in a list, for up to kLongestWarpList neighbours.
struct Cut {
  CandidateLists lists;
  RedoRows redo;
  std::int32_t k = 0;
  double twice_error = 0;
  Slot first_slot = {0}, end_slot = {0};  ///< the slots to cut
  const float* row_slack = nullptr;  ///< [num_slots], may be infinite; or null
  const float* column_slack = nullptr;  ///< [column slots]; null with row_slack
  /// Given as the slacks are, together with them, or null. The sums are floats.
  const float* row_sum = nullptr;
  const float* column_sum = nullptr;
  const float* row_factor = nullptr;  ///< powers of two, or infinite
  const float* column_factor = nullptr;
  /// The lists hold this many entries, some of them for padding. 0: `counts`
  /// has the numbers.
  std::int32_t filled = 0;
  /// No list holds more than `filled` entries, and `counts` has the numbers.
  bool counted = false;
  /// No entry is padding or the row's own point, and none was dropped before.
  bool all_valid = false;
  EstimateRule estimate;
};

/// The purpose of a list's first entries: a filter may omit those that the next
/// cut would drop, and sets the lists' counts to the entries that remain.
struct FillRule {
  static constexpr std::int32_t most = 8;
  /// As Cut's, at most `most`; 0: the lists hold all entries. Each list has one
  /// block of slots, rows and columns are the same slots, and no entry has a
  /// slack.
  std::int32_t k = 0;
  double twice_error = 0;
};

/// Empties the lists. Those outside of slots first .. end - 1 accept nothing,
/// and need no entries.
void start_candidates(const CandidateLists& lists, cudaStream_t stream,
                      Slot first = {0}, Slot end = {INT64_MAX});

/// Tightens the thresholds and drops the candidates below them.
void start_cut(const Cut& cut, cudaStream_t stream);

/// Computes the contract's distances of the candidates and keeps the k nearest.
/// Where `limits` allows it, candidates that cannot be among the k nearest so
/// far are skipped.
struct ExactStep {
  CandidateLists lists;
  RedoRows redo;
  Slot first_slot = {0}, end_slot = {0};    ///< the slots to process
  const double* rows = nullptr;             ///< [.. x padded], by row place
  const double* row_sums = nullptr;         ///< by row place
  const double* columns = nullptr;          ///< [.. x padded], by column place
  const double* column_sums = nullptr;      ///< by column place
  const std::int32_t* list_rows = nullptr;  ///< by place: its row of `nearest`
  /// The same by slot, where points may occupy several slots; null: by place.
  const std::int32_t* slot_rows = nullptr;
  std::int64_t padded = 0;
  LastStep undo;  ///< takes off the matrix's scaling
  /// For small whole numbers: similarities are near enough to overlaps to give
  /// sums of minima exactly, or half of differences (filter/bit_bound.hpp).
  bool sums_given = false;
  Lists nearest;  ///< out
  /// Converts a distance to a similarity; LimitOf::nothing: no conversion is
  /// known.
  LimitRule limits;
  /// [num_slots] or null. The conversion does not hold for rows with infinite
  /// slack.
  const float* row_slack = nullptr;
  /// `nearest` has the neighbours computed so far, if any; such candidates are
  /// marked.
  bool begun = false;
  /// The lists' thresholds may be estimates; `bounds` has the certain ones.
  bool estimated = false;
  /// [kExactCounts] numbers of pairs, in parts; or null.
  unsigned long long* counts = nullptr;
};
static constexpr std::int64_t kExactCounts = 256;

/// Returns whether lists can be re-ranked exactly before all pairs are
/// compared.
bool may_rerank(const ExactStep& step);

/// Computes the first k candidates of each list, or slightly more. `nearest`
/// receives the k nearest of all computed so far. A list's threshold rises to
/// the one that its k-th distance justifies. Lists of fewer than k candidates
/// do not change. step.begun must be set.
void start_reranking_lists(const MetricEntry& metric, const ExactStep& step,
                           cudaStream_t stream);

/// Ranks all candidates exactly, in parts of about 0.1 s, and polls between
/// them. It may overwrite the entries of the lists.
void run_exact(const MetricEntry& metric, const ExactStep& step,
               const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
