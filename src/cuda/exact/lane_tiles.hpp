#pragma once

// Computes a chunk of products of doubles on tensor cores. Each is the
// contract's, bit for bit (vignette "proofs"), lane after lane with features in
// order.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/contract/metric.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/distance.hpp"

namespace fsknn {
namespace cuda {

/// Returns whether the current device's tensor cores add products one after
/// another, each by one fma. Tested once for each device.
bool adds_in_order(const Stream& stream);

/// Memory for the rows of chunks, lane by lane, on the current device.
class LaneTiles {
 public:
  /// Takes chunks of at most this many rows and columns. same: both are always
  /// the same points. blocks: of threads, one for each of the device's
  /// multiprocessors.
  LaneTiles(std::int64_t most_rows, std::int64_t most_columns, bool same,
            std::int64_t padded, int blocks);

  /// Does what start_distances() does, for a metric of rows of length 1.
  void start(const MetricEntry& metric, const Chunk& chunk,
             cudaStream_t stream);

 private:
  const int blocks_;
  DeviceBuffer<double> rows_, columns_;  ///< lane_doubles() of each
  DeviceBuffer<double> waiting_;         ///< [blocks x LaneTile::waiting]
};

}  // namespace cuda
}  // namespace fsknn
