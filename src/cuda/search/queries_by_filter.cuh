#pragma once

// Queries against points by a filter, each device some of the queries: as a
// graph (graph_by_filter.cuh), but that a pair is for its query only.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/exact/answer.cuh"
#include "cuda/exact/candidates.cuh"
#include "cuda/filter/pair_filter.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/search/search.cuh"

namespace fsknn {
namespace cuda {

/// Made and run on one host thread, whose current device it uses. The points,
/// not the queries, must have been shuffled.
class QueriesByFilter {
 public:
  QueriesByFilter(const Search& search, Workers& workers);
  QueriesByFilter(const QueriesByFilter&) = delete;
  QueriesByFilter& operator=(const QueriesByFilter&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~QueriesByFilter() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of these queries, by place.
  void run(std::int64_t first_row, std::int64_t end_row);

  const Stats& stats() const { return stats_; }

  /// Pieces of work, by which progress is told, for so many queries.
  static std::int64_t num_launches(const Search& search, std::int64_t num_rows);

 private:
  bool batch(std::int64_t row0, std::int64_t num_rows);
  bool redo();
  bool redo_widely(std::vector<std::int32_t>& places);
  std::int64_t padded() const { return search_.columns.padded; }

  const Search& search_;
  Workers& workers_;
  const FilterBlocks blocks_;
  const std::int64_t most_rows_;  ///< at a time
  Stream stream_;
  DevicePoints columns_, own_rows_;
  const std::unique_ptr<PairFilter> filter_;
  DeviceBuffer<std::int32_t> column_places_, row_slots_, row_places_, list_rows_;
  DeviceBuffer<unsigned char> column_form_, row_form_;
  DeviceBuffer<float> column_values_, row_values_;
  DeviceBuffer<std::int32_t> counts_;
  DeviceBuffer<float> thresholds_, bounds_;
  DeviceBuffer<Candidate> entries_;
  DeviceBuffer<double> nearest_distance_;  ///< [queries at a time x k]
  DeviceBuffer<std::int32_t> nearest_index_;
  Lists nearest_;
  DeviceBuffer<std::int32_t> redo_places_, redo_count_;
  AnswerWriter answer_;
  Event launch_done_[2];
  // Of the queries that are being done.
  std::int64_t row0_ = 0, num_rows_ = 0;
  FilterWork work_;
  ExactStep exact_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
