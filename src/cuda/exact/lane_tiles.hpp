#pragma once

// A chunk of products of doubles on tensor cores, each pair's the contract's,
// bit for bit (vignette "proofs"): lane after lane, features in their order.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/contract/metric.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/distance.hpp"

namespace fsknn {
namespace cuda {

/// Whether the current device's tensor cores add product after product, each by
/// one fma: looked at once for each device.
bool adds_in_order(const Stream& stream);

/// Room for the rows of chunks, lane by lane, on the current device.
class LaneTiles {
 public:
  /// For chunks of at most so many rows and columns. same: they are always the
  /// same points. blocks: of threads, the device's multiprocessors.
  LaneTiles(std::int64_t most_rows, std::int64_t most_columns, bool same,
            std::int64_t padded, int blocks);

  /// As start_distances(), of a metric of rows of length 1.
  void start(const MetricEntry& metric, const Chunk& chunk,
             cudaStream_t stream);

 private:
  const int blocks_;
  DeviceBuffer<double> rows_, columns_;  ///< lane_doubles() of each
  DeviceBuffer<double> waiting_;         ///< [blocks x LaneTile::waiting]
};

}  // namespace cuda
}  // namespace fsknn
