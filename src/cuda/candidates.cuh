#pragma once

// Candidates: for each row of a filtered search the pairs that may still be
// among its k nearest, and the threshold that a further pair must reach.
//
// Points stand in slots: blocks of FilterTile::columns slots, an odd number of
// blocks, the points spread evenly over them, so that every block has nearly as
// many points as any other. Slots left over are padding: rows of zeros.
//
// Similarities are in the filter's units: the metric's (r, -r or |r|) times
// kSimilarityScale. A pair's distance is 1 - similarity, but for the filter's
// error e: a row's threshold is the k-th largest similarity of its candidates
// less 2 e, for the k-th nearest is no farther than 1 - (k-th largest - e), and
// a pair that is nearer than that, or as near, is filtered as at least e less.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/metrics.hpp"
#include "cuda/select.cuh"

namespace fsknn {
namespace cuda {

struct Candidate {
  float similarity;
  std::int32_t slot;
};

/// A list whose count says that it overflowed: its row is done again.
static constexpr std::int32_t kOverflowed = -1;

/// All pointers are device memory.
struct CandidateLists {
  Candidate* entries = nullptr;      ///< [num_slots x capacity], row-major
  std::int32_t* counts = nullptr;    ///< [num_slots]; may pass the capacity
  float* thresholds = nullptr;       ///< [num_slots]; infinity: takes no more;
                                     ///< not a number: padding
  const std::int32_t* places = nullptr;  ///< [num_slots]; -1: padding
  std::int64_t num_slots = 0;
  std::int32_t capacity = 0;
};

/// Rows that are to be done again, in no order. Device memory.
struct RedoRows {
  std::int32_t* places = nullptr;  ///< [points]
  std::int32_t* count = nullptr;   ///< one number
};

/// What cuts lists after a round.
struct Cut {
  CandidateLists lists;
  RedoRows redo;
  std::int32_t k = 0;
  double twice_error = 0;  ///< 2 e in the filter's units
  std::int64_t first_slot = 0, end_slot = 0;  ///< to cut
  /// The lists hold this many entries, one for each slot of the row's own
  /// block, its own and padding among them; 0: as counts say.
  std::int32_t filled = 0;
};

/// Empties the lists.
void start_candidates(const CandidateLists& lists, cudaStream_t stream);

/// Tightens thresholds and drops what is below them.
void start_cut(const Cut& cut, cudaStream_t stream);

/// The contract's distances of the candidates, and the k nearest of them.
struct ExactStep {
  CandidateLists lists;
  RedoRows redo;
  std::int64_t first_slot = 0, end_slot = 0;  ///< to do
  const double* rows = nullptr;       ///< [.. x padded], by place
  const std::int32_t* ids = nullptr;  ///< by place: the user's numbers
  const std::int32_t* list_rows = nullptr;  ///< by place: the row of `nearest`
  std::int64_t padded = 0;
  Lists nearest;                      ///< out
};
void start_exact(const MetricEntry& metric, const ExactStep& step,
                 cudaStream_t stream);

/// Rows at these places, gathered for the float64 pass, padded with zeros to
/// num_places rows.
struct Gather {
  const double* from = nullptr;           ///< [.. x padded], by place
  const std::int32_t* places = nullptr;   ///< [num_rows]
  const std::int32_t* ids_from = nullptr;
  double* rows = nullptr;                 ///< out: [num_places x padded]
  std::int32_t* ids = nullptr;            ///< out: [num_rows]
  std::int64_t num_rows = 0, num_places = 0, padded = 0;
};
void start_gather(const Gather& gather, cudaStream_t stream);

/// Row r of `from` becomes the row of `to` that the place's list has.
void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
