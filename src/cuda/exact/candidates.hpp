#pragma once

// Candidates: for each row of a filtered search the pairs that may still be
// among its k nearest, and the threshold that a further pair must reach.
//
// Points stand in slots: blocks of FilterTile::columns slots, an odd number of
// blocks, the points spread evenly over them, so that every block has nearly as
// many points as any other. Slots left over are padding: rows of zeros.
//
// Similarities are in the filter's units, and each is an upper bound of the
// pair's or within an error of it: see Cut. What is less similar by the
// contract's distance is less similar here, but for that error. A row's
// threshold is the k-th largest of what its candidates' similarities are at
// least: k of its pairs are as similar as that or more, so a pair that is
// filtered below it is no neighbour.

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
  std::int32_t slot;  ///< with kReranked: the pair's distance has been made
};
static constexpr std::uint32_t kReranked = 0x80000000u;
FSKNN_HD inline std::int32_t slot_of(const Candidate& candidate) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(candidate.slot) &
                                   ~kReranked);
}
FSKNN_HD inline bool is_reranked(const Candidate& candidate) {
  return candidate.slot < 0;
}

/// Lists of row slots, of pairs with column slots; in a graph these are the
/// same. All pointers are device memory.
struct CandidateLists {
  Candidate* entries = nullptr;  ///< [num_slots x capacity], row-major
  /// [num_slots]; may pass the capacity. kOverflowed: dropped what it had.
  std::int32_t* counts = nullptr;
  float* thresholds = nullptr;  ///< [num_slots]; infinity: takes no more;
                                ///< not a number: padding
  /// [num_slots] or null. A row that is to be done again leaves here the
  /// threshold that is certain: what its list holds is good for it. Where
  /// thresholds may be estimates, all rows do.
  float* bounds = nullptr;
  const std::int32_t* places = nullptr;         ///< [num_slots]; -1: padding
  const std::int32_t* column_places = nullptr;  ///< [column slots]; -1: padding
  /// By place: the user's numbers of rows and columns. A pair of equal numbers
  /// is a point with itself, and no candidate. row_ids is null where rows and
  /// columns are different points; a row that is none of them has kNoPoint.
  const std::int32_t* row_ids = nullptr;
  const std::int32_t* column_ids = nullptr;
  std::int64_t num_slots = 0;
  std::int32_t capacity = 0;  ///< see kSmallestCapacity, kLargestCapacity
};

/// A capacity is a power of two between these, or any up to 128, or from 512 to
/// 1,024.
static constexpr std::int32_t kSmallestCapacity = 256;
static constexpr std::int32_t kLargestCapacity = kMostCandidates;

/// Rows that are to be done again, in no order. Device memory.
struct RedoRows {
  std::int32_t* places = nullptr;  ///< [points]
  std::int32_t* count = nullptr;   ///< one number
  /// Points may stand in several slots: `places` takes the slots instead.
  bool by_slot = false;
};
#ifdef __CUDACC__
__device__ inline void do_again(const RedoRows& redo, std::int32_t place,
                                std::int64_t slot) {
  redo.places[atomicAdd(redo.count, 1)] =
      redo.by_slot ? static_cast<std::int32_t>(slot) : place;
}
#endif

/// Thresholds that are estimated. Points stand in no order, so that those a row
/// has met are a fair sample of all, and hold few of its k nearest: the
/// threshold of what it meets next may be that of its `rank` most similar so
/// far. A row whose last threshold is above what is certain is done again, by
/// the last cut or, where distances tell more, by the exact step.
struct EstimateRule {
  bool may = false;       ///< in this pass; then the lists have bounds
  std::int32_t rank = 0;  ///< below k; 0: none after this round
  bool certain = true;    ///< the certain threshold is looked for, too
  bool confirms = false;  ///< the last cut does rows again
  /// What of an entry's error is added to what it is at least.
  double error_part = 0.0;
};

/// What cuts lists after a round. A candidate's similarity is at least
/// entry.similarity - row_slack - column_slack - twice_error and at most
/// entry.similarity + twice_error / 2, all in the filter's units; with sums
/// slacks are over those of both rows, with factors times those of both. An
/// error that is infinite or no number says nothing: see least_similarity().
/// Those entries come first in a list, of up to kLongestWarpList neighbours, by
/// which its threshold was set.
struct Cut {
  CandidateLists lists;
  RedoRows redo;
  std::int32_t k = 0;
  double twice_error = 0;
  Slot first_slot = {0}, end_slot = {0};  ///< to cut
  const float* row_slack = nullptr;  ///< [num_slots], may be infinite; or null
  const float* column_slack = nullptr;  ///< [column slots]; null with row_slack
  /// As the slacks, with them or null; floats of the sums.
  const float* row_sum = nullptr;
  const float* column_sum = nullptr;
  const float* row_factor = nullptr;  ///< powers of two, or infinite
  const float* column_factor = nullptr;
  /// The lists hold this many entries, some of them padding's; 0: as counts
  /// say.
  std::int32_t filled = 0;
  /// No list holds more than `filled`, and each what its count says.
  bool counted = false;
  /// No entry is of padding or of the row's own point, or was dropped before.
  bool all_valid = false;
  EstimateRule estimate;
};

/// What the first entries of a list are for: a filter may leave out those that
/// the cut after them would drop, and set the lists' counts to what they hold.
struct FillRule {
  static constexpr std::int32_t most = 8;
  /// As Cut's, at most `most`; 0: lists hold all. Each list has one block of
  /// slots, rows and columns are the same slots, and no entry has a slack.
  std::int32_t k = 0;
  double twice_error = 0;
};

/// Empties the lists.
void start_candidates(const CandidateLists& lists, cudaStream_t stream);

/// Tightens thresholds and drops what is below them.
void start_cut(const Cut& cut, cudaStream_t stream);

/// The contract's distances of the candidates, and the k nearest of them. A
/// candidate that the k-th of those so far has left behind is not looked at
/// where `limits` tells so.
struct ExactStep {
  CandidateLists lists;
  RedoRows redo;
  Slot first_slot = {0}, end_slot = {0};    ///< to do
  const double* rows = nullptr;             ///< [.. x padded], by row place
  const double* row_sums = nullptr;         ///< by row place
  const double* columns = nullptr;          ///< [.. x padded], by column place
  const double* column_sums = nullptr;      ///< by column place
  const std::int32_t* list_rows = nullptr;  ///< by place: the row of `nearest`
  /// The same by slot, where points may stand in several; null: by place.
  const std::int32_t* slot_rows = nullptr;
  std::int64_t padded = 0;
  PowerOfTwo undo = {1.0, 1.0};  ///< takes off the matrix's scaling
  /// Of small whole numbers: similarities are near enough to overlaps to tell
  /// sums of the smaller ones, or half of differences (filter/bit_bound.hpp).
  bool sums_given = false;
  Lists nearest;  ///< out
  /// What a distance means to similarities; of LimitOf::nothing: nobody knows.
  LimitRule limits;
  /// [num_slots] or null: of rows whose slack is infinite it means nothing.
  const float* row_slack = nullptr;
  /// `nearest` has what was reranked before, or nothing yet; such candidates
  /// are marked.
  bool begun = false;
  /// The lists' thresholds may be estimates: their bounds are what is certain.
  bool estimated = false;
  /// [kExactCounts] of pairs, in parts; or null.
  unsigned long long* counts = nullptr;
};
static constexpr std::int64_t kExactCounts = 256;

/// Whether lists can be reranked before all pairs are met.
bool may_rerank(const ExactStep& step);

/// The first candidates of each list, k or some more, and no others: `nearest`
/// gets the k nearest of all that were reranked so far, and a list's threshold
/// is what the k-th of them is good for, if that is more than it was. Lists of
/// fewer than k candidates stay as they are. step.begun must be set.
void start_reranking_lists(const MetricEntry& metric, const ExactStep& step,
                           cudaStream_t stream);

/// The nearest of all candidates, in turns of about 0.1 s, and polls between
/// them. The entries of lists may be gone after it.
void run_exact(const MetricEntry& metric, const ExactStep& step,
               const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
