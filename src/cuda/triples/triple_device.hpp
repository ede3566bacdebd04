#pragma once

// Holds the points of a search for triples on one device. A lane is one host
// thread's pass over triples there. While one lane's host thread examines
// results, the other's kernels run.

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

/// Must be constructed and used with the device current; the points must
/// outlive it.
class DeviceTriples {
 public:
  /// sizes.bits: of each value's code, if all are small whole numbers; 0:
  /// make() chooses. table: of tables of alleles.
  DeviceTriples(const PreparedPoints& points, const TripleSizes& sizes,
                const TableTerms& table);

  /// Returns whether whole numbers suit pairs of an apex's others.
  bool words_serve();
  /// Converts the points to this form, for lanes that begin afterwards; not for
  /// codes.
  void make(TripleForm form);

  const TripleSumBound& bound() const { return bound_; }
  PowerOfTwo scale() const { return scale_; }
  double largest_sum() const { return largest_sum_; }
  const TriplePoints& points() const { return view_; }

 private:
  void set_most(const Stream& stream);
  void sum_all_pairs(const Stream& stream);

  const PreparedPoints& points_;
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<__half> numbers_;
  DeviceBuffer<float> most_, pair_sums_;
  PowerOfTwo scale_;
  double largest_ = 0.0, largest_sum_ = 0.0;
  PowerOfTwo words_scale_;
  bool asked_ = false, words_serve_ = false, made_ = false;
  TripleSumBound bound_;
  TriplePoints view_;
};

/// The settings that all lanes of a search share: one of three results is
/// requested.
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
  /// After a failure, work in progress still uses the buffers.
  ~TripleLane() { cudaStreamSynchronize(stream_.get()); }

  /// Processes the task's apexes [from, to), at most as many as the plan
  /// allows.
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
  DeviceBuffer<TripleTableColumn> pool_tables_;
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
