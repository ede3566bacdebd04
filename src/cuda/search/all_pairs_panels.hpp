#pragma once

// Computes all pairs in the contract's doubles where the points do not fit on
// the device: its segment of the splits, panels of rows against panels of
// columns.

#include <cstdint>
#include <memory>

#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/prepare/panel_stream.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// Constructed and run on one host thread, whose current device it uses.
class AllPairsPanels {
 public:
  AllPairsPanels(const Search& search, Workers& workers);
  AllPairsPanels(const AllPairsPanels&) = delete;
  AllPairsPanels& operator=(const AllPairsPanels&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~AllPairsPanels() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes the neighbours of the rows of these splits.
  void run(std::int64_t first_split, std::int64_t last_split);

  double pairs() const { return pass_.pairs(); }
  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool correlate(const Panel& rows);

  const Search& search_;
  Workers& workers_;
  const bool symmetric_;
  const std::int64_t chunk_rows_, chunk_columns_;  ///< of any chunk, at most
  Stream stream_;
  PanelBuffer rows_, columns_[2];
  DoublePass pass_;
  DeviceBuffer<double> list_correlation_;  ///< [chunk_rows_ x k]
  AnswerWriter answer_;
  PanelStream from_columns_;
  std::unique_ptr<PanelStream> from_queries_;  ///< null for a graph
};

}  // namespace cuda
}  // namespace fsknn
