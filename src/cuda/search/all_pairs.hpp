#pragma once

// Computes all pairs in the contract's doubles: the device's segment of the
// splits, band by band and chunk by chunk. The device holds the points, or they
// are streamed.

#include <cstdint>
#include <memory>

#include "cuda/device/resources.hpp"
#include "cuda/device/two_under_way.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/exact/lane_tiles.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/chunk_panels.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// Constructed and run on one host thread, whose current device it uses.
class AllPairs {
 public:
  AllPairs(const Search& search, Workers& workers);
  AllPairs(const AllPairs&) = delete;
  AllPairs& operator=(const AllPairs&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~AllPairs() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes the neighbours of the rows of these splits.
  void run(std::int64_t first_split, std::int64_t last_split);

  double pairs() const { return pairs_; }
  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool band(const PairBand& band);
  bool chunk(const PairBand& band, std::int64_t split, std::int64_t column,
             const Panel& rows, const Panel& columns);
  void start(const Chunk& chunk);
  bool emit(const Lists& lists, const Panel& rows);
  bool correlate(const Lists& lists, const Panel& rows);
  Panel rows_of(std::int64_t split);
  /// Returns the lists of the split's rows within the band's.
  Lists lists_of(const PairBand& band, std::int64_t split) {
    return lists_.lists((split - band.first) * search_.plan.chunk_size);
  }

  const Search& search_;
  Workers& workers_;
  const bool symmetric_;
  Stream stream_;
  const DevicePoints* const held_;  ///< the columns; null: they are streamed
  DevicePoints own_rows_;
  std::int64_t chunk_rows_, chunk_columns_;  ///< of any chunk, at most
  ChunkPanels panels_;
  ChunkBuffer chunk_;
  std::unique_ptr<LaneTiles> lanes_;  ///< null: without tensor cores
  ListBuffer lists_;                  ///< of a band
  DeviceBuffer<double>
      correlations_;  ///< of streamed points: [chunk_rows_ x k]
  AnswerWriter answer_;
  TwoUnderWay under_way_;
  double pairs_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
