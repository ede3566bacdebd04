#pragma once

// Rows that a filter could not settle, done again against all points.

#include <cstdint>
#include <vector>

#include "cuda/segment.cuh"

namespace fsknn {
namespace cuda {

/// Every pair of these rows in the contract's doubles.
class DoubleRedo {
 public:
  /// nearest: the lists to write to; list_rows [by place, device]: their rows.
  DoubleRedo(const Search& search, Workers& workers, const Stream& stream,
             const DevicePoints& points, const std::int32_t* list_rows,
             const Lists& nearest);

  /// The rows at these places. Waits for the stream. Returns whether to go on.
  bool run(const std::vector<std::int32_t>& places);
  double pairs() const { return pairs_; }

 private:
  bool batch(const std::int32_t* places, std::int64_t num_rows);

  const Search& search_;
  Workers& workers_;
  const Stream& stream_;
  const DevicePoints& points_;
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
