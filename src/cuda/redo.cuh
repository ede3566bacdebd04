#pragma once

// Rows that a filter could not settle, done again against all points.

#include <cstdint>
#include <vector>

#include "cuda/candidates.cuh"
#include "cuda/pair_filter.cuh"
#include "cuda/segment.cuh"

namespace fsknn {
namespace cuda {

/// Rows by the same filter as before against all points, with much longer lists
/// and from the thresholds that what they had found is good for.
class WideRedo {
 public:
  /// Of the search on this device. `lists` are not needed any more: their memory
  /// is used.
  struct Search {
    const MetricEntry* metric = nullptr;
    Workers* workers = nullptr;
    PairFilter* filter = nullptr;
    FilterRows columns;
    CandidateLists lists;
    ExactStep exact;        ///< as for the search's own lists
    FilterRounds rounds;    ///< the same
    std::int64_t row_bytes = 0, floats_a_slot = 0;
  };
  WideRedo(const Search& search, const Stream& stream, std::int64_t num_rows);

  /// Whether there are longer lists than the search's.
  static bool helps(const CandidateLists& lists) {
    return lists.capacity < kLargestCapacity && lists.bounds != nullptr;
  }

  /// The rows in these slots. Waits for the stream. Returns whether to go on.
  bool run(const std::vector<std::int32_t>& slots,
           const std::vector<std::int32_t>& places);

  /// The places of rows that even these lists are too short for.
  const std::vector<std::int32_t>& left() const { return left_; }
  double pairs() const { return pairs_; }

 private:
  bool batch(const std::int32_t* slots, const std::int32_t* places,
             std::int64_t num_rows);

  const Search& search_;
  const Stream& stream_;
  const WideRows shape_;
  const std::int64_t most_rows_;  ///< at a time
  DeviceBuffer<unsigned char> rows_;
  DeviceBuffer<float> values_, thresholds_;
  DeviceBuffer<double> prepared_, sums_;
  DeviceBuffer<std::int32_t> slots_, own_slots_, ids_, places_, counts_,
      redo_places_, redo_count_;
  std::vector<std::int32_t> left_;
  Event launch_done_[2];
  double pairs_ = 0;
};

/// Every pair of these rows in the contract's doubles.
class DoubleRedo {
 public:
  /// rows and columns: the same points for a graph. nearest: the lists to write
  /// to; list_rows [by row place, device]: their rows.
  DoubleRedo(const Search& search, Workers& workers, const Stream& stream,
             const DevicePoints& rows, const DevicePoints& columns,
             const std::int32_t* list_rows,
             const Lists& nearest);

  /// The rows at these places. Waits for the stream. Returns whether to go on.
  bool run(const std::vector<std::int32_t>& places);
  double pairs() const { return pairs_; }

 private:
  bool batch(const std::int32_t* places, std::int64_t num_rows);

  const Search& search_;
  Workers& workers_;
  const Stream& stream_;
  const DevicePoints &row_points_, &points_;
  const std::int32_t* list_rows_;
  const Lists nearest_;
  std::int64_t chunk_rows_, chunk_columns_;
  DeviceBuffer<std::int32_t> places_, ids_;
  DeviceBuffer<double> rows_, sums_, list_distance_, distances_;
  DeviceBuffer<std::int32_t> list_index_;
  double pairs_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
