#pragma once

// All pairs within a distance in the contract's doubles, chunk by chunk. Points
// come in panels, or stay on the devices for the searches after this one.

#include <atomic>
#include <cstdint>
#include <memory>

#include "cuda/device/used_devices.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/prepare/panel_stream.cuh"
#include "cuda/search/chunk_buffer.cuh"
#include "cuda/search/within_work.cuh"

namespace fsknn {
namespace cuda {

/// The side of chunks where points come in panels. Throws where none fits.
std::int64_t side_in_panels(const WithinWork& work, double bytes_usable,
                            int device);

/// The side of chunks where points stay in the work's store; 0: there is no
/// room for them whole, beside chunks that are large enough.
std::int64_t side_beside_points(const WithinWork& work, const UsedDevices& gpus,
                                double bytes_usable);

/// Chunks in the same rows, of all of which there are `num_chunks()`.
inline std::int64_t num_splits(const WithinWork& work) {
  return ceil_div(work.rows.size(), work.side);
}
inline std::int64_t num_chunks(const WithinWork& work) {
  const std::int64_t across = ceil_div(work.columns.size(), work.side);
  return work.graph() ? across * (across + 1) / 2 : num_splits(work) * across;
}

struct Band;

/// The part of one device. Made and run on one host thread.
class WithinInChunks {
 public:
  WithinInChunks(const WithinWork& work, Workers& workers);
  WithinInChunks(const WithinInChunks&) = delete;
  WithinInChunks& operator=(const WithinInChunks&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~WithinInChunks() { cudaStreamSynchronize(stream_.get()); }

  /// The splits that `next` gives out.
  void run(std::atomic<std::int64_t>& next, WithinCollector& collector);

  const Stats& stats() const { return stats_; }

 private:
  Panel row_panel(Place first, std::int64_t count);
  template <class Use>
  bool for_columns(Place first, Use use);
  bool chunk(const Panel& rows, const Panel& columns,
             WithinCollector& collector, WithinCollector::Taker& taker);
  bool take(const Band& band, WithinCollector& collector,
            WithinCollector::Taker& taker);

  const WithinWork& work_;
  Workers& workers_;
  Stream stream_;
  const DevicePoints* const held_;  ///< the columns, where they stay
  PanelBuffer rows_, columns_[2];
  ChunkBuffer chunk_;
  DeviceBuffer<double> limits_, column_limits_;
  FoundPairs found_;
  std::unique_ptr<PanelStream> from_columns_;  ///< null where they stay
  std::unique_ptr<PanelStream> from_queries_;  ///< null for a graph
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
