#pragma once

// All pairs in the contract's doubles, of points that the device holds: its
// segment of the splits, chunk by chunk.

#include <cstdint>

#include "cuda/device/resources.cuh"
#include "cuda/device/two_under_way.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.cuh"
#include "cuda/search/chunk_buffer.cuh"
#include "cuda/search/search.cuh"

namespace fsknn {
namespace cuda {

/// Made and run on one host thread, whose current device it uses.
class AllPairs {
 public:
  AllPairs(const Search& search, Workers& workers);
  AllPairs(const AllPairs&) = delete;
  AllPairs& operator=(const AllPairs&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~AllPairs() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of the rows of these splits.
  void run(std::int64_t first_split, std::int64_t last_split);

  double pairs() const { return pairs_; }
  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool chunk(std::int64_t row0, std::int64_t num_rows, std::int64_t column0);
  void emit(std::int64_t row0, std::int64_t num_rows);
  const DevicePoints& row_points() const {
    return symmetric_ ? columns_ : own_rows_;
  }

  const Search& search_;
  Workers& workers_;
  const bool symmetric_;
  Stream stream_;
  const DevicePoints& columns_;
  DevicePoints own_rows_;
  std::int64_t chunk_rows_, chunk_columns_;  ///< at most, of any chunk
  ChunkBuffer chunk_;
  ListBuffer lists_;
  AnswerWriter answer_;
  TwoUnderWay under_way_;
  double pairs_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
