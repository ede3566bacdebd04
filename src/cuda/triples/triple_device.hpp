#pragma once

// The points of a search for triples on one device, and a lane: one host
// thread's way to go through triples there. While one lane's host thread looks
// at what was found, the other's kernels run.

#include <cstdint>
#include <vector>

#include "core/search/triple_scanner.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/plan/triple_plan.hpp"
#include "cuda/triples/triple_bound.hpp"
#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {

/// Made, and used, with the device current; the points must outlive it.
class DeviceTriples {
 public:
  /// bits: of each value's code, where all are small whole numbers; 0: make()
  /// says.
  DeviceTriples(const PreparedPoints& points, int bits);

  /// Whether whole numbers are good for pairs of an apex's others.
  bool words_serve();
  /// Makes them so, for lanes that begin afterwards; not where there are codes.
  void make(TripleForm form);

  const TripleSumBound& bound() const { return bound_; }
  PowerOfTwo scale() const { return scale_; }
  double largest_sum() const { return largest_sum_; }
  const TriplePoints& points() const { return view_; }

 private:
  void set_most(const Stream& stream);

  const PreparedPoints& points_;
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<__half> numbers_;
  DeviceBuffer<float> most_;
  PowerOfTwo scale_;
  double largest_ = 0.0, largest_sum_ = 0.0;
  PowerOfTwo words_scale_;
  bool asked_ = false, words_serve_ = false, made_ = false;
  TripleSumBound bound_;
  TriplePoints view_;
};

/// What lanes of a search have in common: one of three things is wanted.
struct TripleOrder {
  const TripleScanner::Task* task = nullptr;
  const TripleScanner::Take* take = nullptr;    ///< triples
  const std::vector<double>* breaks = nullptr;  ///< counts
  std::int32_t* alike = nullptr;  ///< [apexes x num_alike] of most_alike()
  std::int64_t num_alike = 0;
};

class TripleLane {
 public:
  TripleLane(const DeviceTriples& points, const TripleSizes& sizes,
             const TriplePlan& plan, const TripleOrder& order, Workers& workers,
             std::mutex& taking);
  TripleLane(const TripleLane&) = delete;
  TripleLane& operator=(const TripleLane&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~TripleLane() { cudaStreamSynchronize(stream_.get()); }

  /// The task's apexes [from, to), no more than the plan has.
  void run(std::int64_t from, std::int64_t to);
  const TripleStats& stats() const { return stats_; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  void begin_jobs(std::int64_t from, std::int64_t to);
  void find_alike(std::int64_t from, std::int64_t to);
  void list_others();
  std::int64_t pool_rows(const TripleJob& job) const {
    return pool_rows_of(sizes_, job.columns, job.rows);
  }
  void run_group(std::size_t from, std::size_t to);
  void run_tiles(std::int64_t from, std::int64_t to);
  bool try_tiles(std::int64_t from, std::int64_t to);

  const TripleSizes sizes_;
  const TriplePlan plan_;
  const TripleOrder& order_;
  const TripleSumBound bound_;
  Workers& workers_;
  std::mutex& taking_;
  const Stream stream_;
  DeviceBuffer<char> contained_;
  DeviceBuffer<TripleJob> d_jobs_;
  DeviceBuffer<float> pair_sums_;
  DeviceBuffer<std::int32_t> others_, lowers_, list_sizes_, alike_;
  DeviceBuffer<__half> x_;
  DeviceBuffer<std::int32_t> pool_places_;
  DeviceBuffer<float> pool_most_;
  DeviceBuffer<int2> pool_counts_;
  DeviceBuffer<TripleCandidate> candidates_;
  DeviceBuffer<TripleHit> hits_;
  DeviceBuffer<unsigned long long> found_;  ///< candidates, hits
  DeviceBuffer<double> breaks_;
  DeviceBuffer<unsigned long long> bin_counts_;
  TripleTileWork work_;
  TripleLists lists_;
  TripleChoice choice_;
  TripleBins bins_;
  std::vector<TripleJob> jobs_;
  std::vector<std::int32_t> h_list_sizes_;
  std::vector<unsigned long long> h_bin_counts_;
  std::vector<TripleHit> h_hits_;
  std::vector<std::int64_t> counts_;
  std::int64_t at_once_;
  TripleStats stats_;
};

}  // namespace cuda
}  // namespace fsknn
