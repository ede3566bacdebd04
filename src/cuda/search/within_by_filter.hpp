#pragma once

// Finds all pairs within a distance by a filter, on devices that hold the
// points. It compares each pair once. A pair that it cannot prove to be farther
// apart than the limits of both its points is computed in the contract's
// doubles.

#include <atomic>
#include <cstdint>
#include <memory>

#include "cuda/device/workers.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/within_jobs.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/within_work.hpp"

namespace fsknn {
namespace cuda {

/// Returns the filter, if one pays; none: all pairs in doubles.
FilterChoice filter_within(const WithinWork& work, const GpuFacts& facts);

/// Returns the bytes that a device holds for it.
double bytes_by_filter(const WithinWork& work, const GpuFacts& facts);

/// The part of one device. Constructed and run on one host thread.
class WithinByFilter {
 public:
  /// Processes the slabs of device `own` of `count`.
  WithinByFilter(const WithinWork& work, Workers& workers, int own, int count);
  WithinByFilter(const WithinByFilter&) = delete;
  WithinByFilter& operator=(const WithinByFilter&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~WithinByFilter() { cudaStreamSynchronize(stream_.get()); }

  /// Returns the pieces of its work, for progress.
  static std::int64_t num_pieces(const WithinWork& work, int own, int count);

  /// dense: set by the first device that finds that so many pairs pass the
  /// filter that computing all in doubles is as fast. All devices then stop,
  /// and the pairs collected are useless. Null: they continue.
  void run(WithinCollector& collector, std::atomic<bool>* dense);

  const Stats& stats() const { return stats_; }

 private:
  void make_rows();
  void set_thresholds();
  std::int64_t num_candidates() const;
  void rerank(std::int64_t count, WithinCollector& collector,
              WithinCollector::Taker& taker);

  const WithinWork& work_;
  const double share_;  ///< of all pairs
  WithinJobs jobs_;
  Stream stream_;
  StoredPoints& stored_;
  std::unique_ptr<DevicePoints> queries_;               ///< null for a graph
  std::unique_ptr<FilterForm> query_form_;              ///< null for a graph
  DeviceBuffer<std::int32_t> column_places_;            ///< by slot
  DeviceBuffer<std::int32_t> row_places_;               ///< empty for a graph
  DeviceBuffer<float> thresholds_, column_thresholds_;  ///< by slot
  DeviceBuffer<SlotPair> candidates_;
  DeviceBuffer<unsigned long long> num_candidates_;
  FoundPairs found_;
  FilterPass pass_;
  PairsToRerank reranked_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
