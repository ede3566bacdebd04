#pragma once

// A graph by the filter, on one device: rounds of filtered pairs, the exact
// step over the candidates, and the float64 pass for rows that overflowed.

#include <cstdint>
#include <vector>

#include "cuda/answer.cuh"
#include "cuda/candidates.cuh"
#include "cuda/pair_filter.cuh"
#include "cuda/segment.cuh"

namespace fsknn {
namespace cuda {

/// Made and run on one host thread, whose current device it uses. The points
/// must have been shuffled: rows that stand together must not be near.
class FilteredGraph {
 public:
  FilteredGraph(const Search& search, Workers& workers,
                const std::vector<FilterJobs>& launches);
  FilteredGraph(const FilteredGraph&) = delete;
  FilteredGraph& operator=(const FilteredGraph&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~FilteredGraph() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of all points.
  void run();

  double pairs_filtered() const { return pairs_filtered_; }
  double pairs_exact() const { return pairs_exact_; }
  double rows_redone() const { return rows_redone_; }
  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool filter();
  bool redo();
  bool redo_batch(const std::int32_t* places, std::int64_t num_rows);
  void write_out();
  std::int64_t padded() const { return search_.columns.padded; }

  const Search& search_;
  Workers& workers_;
  const std::vector<FilterJobs>& launches_;
  const FilterBlocks blocks_;
  Stream stream_;
  DevicePoints points_;
  /// By place: the row of the lists, which are in the order of the user's
  /// numbers; and the other way.
  std::vector<std::int32_t> list_rows_, row_places_, row_ids_;
  DeviceBuffer<std::int32_t> d_list_rows_, d_row_places_;
  DeviceBuffer<double> nearest_distance_;     ///< [points x k]
  DeviceBuffer<std::int32_t> nearest_index_;
  Lists nearest_;
  DeviceBuffer<std::int32_t> redo_places_, redo_count_;
  AnswerWriter answer_;
  Event launch_done_[2];
  double pairs_filtered_ = 0, pairs_exact_ = 0, rows_redone_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
