#pragma once

// The work of one device: its segment of the splits, chunk by chunk.

#include <atomic>
#include <cstdint>

#include "core/plan.hpp"
#include "core/request.hpp"
#include "cuda/exact/answer.cuh"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/prepare.cuh"
#include "cuda/device/resources.cuh"
#include "cuda/exact/select.cuh"
#include "cuda/device/workers.hpp"

namespace fsknn {
namespace cuda {

/// Rows that `count` of them take, in whole tiles of the distance kernel.
inline std::int64_t whole_tiles(std::int64_t count) {
  return (count + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

/// What all segments of a search read.
struct Search {
  const Request& request;
  const Plan& plan;
  const PlacedPoints& rows;
  const PlacedPoints& columns;  ///< the same object for a graph
  RowRecipe prepare;
  PowerOfTwo undo;              ///< takes off the matrix's scaling
  const Neighbours& out;
  // Of a filtered search whose points come in panels: how, and the points in
  // their own order.
  FilterStreaming streaming = {};
  const PlacedPoints* ranked = nullptr;
};

/// Host threads for one of the search's devices.
int threads_of(const Search& search);

/// Prepared points on the current device, by place, padded with rows of zeros
/// to whole chunks (Arefin 2012, Eq. 1).
struct DevicePoints {
  DevicePoints() = default;
  DevicePoints(const PlacedPoints& points, const Search& search,
               std::int64_t num_places, const Stream& stream);

  DeviceBuffer<double> rows;       ///< [num_places x padded], row-major
  DeviceBuffer<double> sums;       ///< [num_places]
  /// [num_places]: the user's numbers from 0; of queries with PlacedPoints::self
  /// what that says.
  DeviceBuffer<std::int32_t> ids;
  /// [the source's points]: where each stands, -1: nowhere.
  DeviceBuffer<std::int32_t> places;
};

/// Made and run on one host thread, whose current device it uses.
class Segment {
 public:
  Segment(const Search& search, Workers& workers);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~Segment() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of the rows of these splits.
  void run(std::int64_t first_split, std::int64_t last_split);

  double pairs() const { return pairs_; }
  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool chunk(std::int64_t row0, std::int64_t num_rows, std::int64_t column0);
  void emit(std::int64_t row0, std::int64_t num_rows);

  const Search& search_;
  Workers& workers_;
  const bool symmetric_;
  Stream stream_;
  DevicePoints columns_, own_rows_;
  std::int64_t chunk_rows_, chunk_columns_;   ///< at most, of any chunk
  DeviceBuffer<double> distances_;            ///< [chunk_rows_ x chunk_columns_]
  DeviceBuffer<double> list_distance_;        ///< [chunk_rows_ x k]
  DeviceBuffer<std::int32_t> list_index_;
  Lists lists_;
  AnswerWriter answer_;
  // Two chunks are under way at a time: the device never waits for the host.
  Event chunk_done_[2];
  std::int64_t num_chunks_ = 0;
  double pairs_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
