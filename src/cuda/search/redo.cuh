#pragma once

// Rows that a filter could not settle, done again against all points.

#include <cstdint>
#include <vector>

#include "cuda/exact/candidates.cuh"
#include "cuda/filter/pair_filter.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/search/search.cuh"

namespace fsknn {
namespace cuda {

/// Rows by the same filter as before against all points, with much longer lists
/// and from the thresholds that what they had found is good for.
class WideFilter {
 public:
  /// Of the search on this device. `lists` are not needed any more: their memory
  /// is used, where there is enough.
  struct Search {
    Workers* workers = nullptr;
    PairFilter* filter = nullptr;
    FilterRows columns;
    CandidateLists lists;
    FilterRounds rounds;    ///< the same
    std::int64_t padded = 0, k = 0;
  };
  WideFilter(const Search& search, const Stream& stream, std::int64_t num_rows);

  /// Whether there are longer lists than the search's.
  static bool helps(const CandidateLists& lists) {
    return lists.capacity < kLargestCapacity && lists.bounds != nullptr;
  }
  std::int64_t most_rows() const { return most_rows_; }

  /// The next rows, no more than most_rows(), are these in the search's lists.
  void begin(const std::int32_t* slots, const std::int32_t* places,
             std::int64_t num_rows);
  /// [num_rows] of the rows, device memory.
  const std::int32_t* places() const { return places_.data(); }
  /// Those rows, prepared, against all points. Returns whether to go on.
  bool run(const PreparedRows& rows);

  /// What was found, row r in slot r; rows that even these lists are too short
  /// for are in redo().
  const CandidateLists& lists() const { return work_.lists; }
  RedoRows redo() { return {redo_places_.data(), redo_count_.data()}; }
  /// [rows] 0, 1, ..., device memory.
  const std::int32_t* slots() const { return own_slots_.data(); }

 private:
  const Search search_;
  const Stream& stream_;
  const WideRows shape_;
  const std::int64_t most_rows_;
  DeviceBuffer<Candidate> entries_;  ///< [most_rows_ x capacity], or none
  DeviceBuffer<unsigned char> rows_;
  DeviceBuffer<float> values_, thresholds_;
  DeviceBuffer<std::int32_t> slots_, own_slots_, places_, counts_, redo_places_,
      redo_count_;
  FilterWork work_;
  std::int64_t num_rows_ = 0;
  Event launch_done_[2];
};

/// Rows by a wider filter, and the contract's distances of what it leaves.
class WideRedo {
 public:
  /// exact: as for the search's own lists.
  WideRedo(const WideFilter::Search& search, const MetricEntry& metric,
           const ExactStep& exact, const Stream& stream, std::int64_t num_rows);

  /// The rows in these slots. Waits for the stream. Returns whether to go on.
  bool run(const std::vector<std::int32_t>& slots,
           const std::vector<std::int32_t>& places);

  /// The places of rows that even these lists are too short for.
  const std::vector<std::int32_t>& left() const { return left_; }
  double pairs() const { return pairs_; }

 private:
  bool batch(const std::int32_t* slots, const std::int32_t* places,
             std::int64_t num_rows);

  const MetricEntry& metric_;
  const ExactStep exact_;
  const Stream& stream_;
  WideFilter filter_;
  DeviceBuffer<double> prepared_, sums_;
  std::vector<std::int32_t> left_;
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
