#pragma once

// Finds all pairs within a distance in the contract's doubles, chunk by chunk.

#include <atomic>
#include <cstdint>

#include "cuda/device/workers.hpp"
#include "cuda/search/within_work.hpp"

namespace fsknn {
namespace cuda {

struct Band;

/// The part of one device. Constructed and run on one host thread.
class WithinInChunks {
 public:
  WithinInChunks(const WithinWork& work, Workers& workers);
  WithinInChunks(const WithinInChunks&) = delete;
  WithinInChunks& operator=(const WithinInChunks&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~WithinInChunks() { cudaStreamSynchronize(chunks_.stream().get()); }

  /// Processes the splits that `next` hands out.
  void run(std::atomic<std::int64_t>& next, WithinCollector& collector);

  const Stats& stats() const { return stats_; }

 private:
  bool take(const Band& band, WithinCollector& collector,
            WithinCollector::Taker& taker);

  const WithinWork& work_;
  Workers& workers_;
  PairChunks chunks_;
  FoundPairs found_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
