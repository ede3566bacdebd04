#pragma once

// The exact step where rows are not all in memory: candidates wait in one long
// list, and a pair is computed when both its rows are present.

#include <cstdint>

#include "core/contract/metric.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/prepare/panel_stream.hpp"

namespace fsknn {
namespace cuda {

/// The candidates of the points that a device owns, point by point in the order
/// of their panel places. Device memory.
struct WaitingPairs {
  const std::int32_t* own_places = nullptr;  ///< [owned], ascending
  const std::int64_t* first = nullptr;       ///< [owned + 1]
  std::int32_t* columns = nullptr;           ///< [pairs]: panel places
  /// [pairs] DistanceRule::value()
  double* values = nullptr;
};

/// Lists after the last cut, to be joined into one. Lists that overflowed
/// contribute no pairs.
struct PairsFromLists {
  CandidateLists lists;
  const std::int32_t* own_slots = nullptr;     ///< [owned]
  const std::int32_t* panel_places = nullptr;  ///< [num_slots]
  std::int64_t num_owned = 0;
};
void start_waiting(const PairsFromLists& from, const WaitingPairs& to,
                   cudaStream_t stream);

/// Selects the pairs of owned points first_owned .. end_owned - 1, all in
/// `rows`, whose other point is in `columns`.
struct Reranking {
  WaitingPairs pairs;
  std::int64_t first_owned = 0, end_owned = 0;
  Panel rows, columns;
  std::int64_t padded = 0;
  LastStep undo;
};
void start_reranking(const MetricEntry& metric, const Reranking& reranking,
                     cudaStream_t stream);

/// Handles both in one launch: `many` has very many rows with few present pairs
/// each, as for a short panel.
void start_reranking(const MetricEntry& metric, const Reranking& few,
                     const Reranking& many, cudaStream_t stream);

/// Finds the nearest of the exactly computed pairs, for a range of the owned
/// points. Lists of points without pairs remain empty.
struct Ranking {
  WaitingPairs pairs;
  std::int64_t first_owned = 0, end_owned = 0;
  const std::int32_t* ids = nullptr;  ///< by panel place; null: the place
                                      ///< itself
  std::int32_t most_pairs = 0;        ///< of any point
  /// By owned point: its row of `nearest`, from which first_row is subtracted;
  /// null: they are in sequence.
  const std::int32_t* rows = nullptr;
  std::int64_t first_row = 0;
  Lists nearest;                  ///< out: [end_owned - first_owned x k]
  double* correlation = nullptr;  ///< out: the same; null: not requested
};
void start_ranking(const MetricEntry& metric, const Ranking& ranking,
                   cudaStream_t stream);

/// Moves the candidates of slots first_slot .. end_slot - 1, which were cut in
/// longer lists, into the lists of the search.
void start_narrowing(const CandidateLists& from, const CandidateLists& to,
                     Slot first_slot, Slot end_slot, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
