#pragma once

// A graph by a filter, on one device or several: rounds of filtered pairs, the
// exact step over the candidates, and rows that overflowed done again.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/exact/answer.cuh"
#include "cuda/exact/candidates.cuh"
#include "cuda/search/exchange.cuh"
#include "cuda/filter/pair_filter.cuh"
#include "cuda/search/search.cuh"

namespace fsknn {
namespace cuda {

/// Where each point of a filtered search stands: its slot, and the row of the
/// lists of neighbours that its owner keeps in the order of the user's numbers.
struct FilterLayout {
  FilterLayout(const FilterBlocks& blocks, std::int64_t first_block,
               std::int64_t end_block, const PointOrder& order);

  std::int64_t num_slots = 0;
  std::int64_t first_slot = 0, end_slot = 0;   ///< owned
  std::vector<std::int32_t> places;            ///< [num_slots]; -1: padding
  std::vector<std::int32_t> slots;             ///< by place
  // Of owned points, in the order of the user's numbers.
  std::vector<std::int32_t> row_ids, row_places;
  std::vector<std::int32_t> list_rows;         ///< by place; -1: not owned
};

FilterLayout layout_of(const Search& search, const FilterTeam& team, int own);

/// Jobs of the slabs of these blocks.
FilterRounds rounds_of(const Search& search, std::int64_t first_block,
                       std::int64_t end_block, int device);

/// The part of one device. Made and run on its worker, whose current device it
/// uses; the parts of all devices must outlive the work of each, since they read
/// each other's lists. The points must have been shuffled: rows that stand
/// together must not be near.
class GraphByFilter {
 public:
  GraphByFilter(const Search& search, FilterTeam& team, int own);
  GraphByFilter(const GraphByFilter&) = delete;
  GraphByFilter& operator=(const GraphByFilter&) = delete;
  ~GraphByFilter() { wait(); }
  /// Until nothing of this device's work is under way. After a failure, too.
  void wait() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of the points that this device owns.
  void run();

  const Stats& stats() const { return stats_; }

  /// Pieces of work, by which progress is told, of all devices.
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  void make_rows();
  bool filter();
  void finish();
  bool redo();
  bool redo_widely(std::vector<std::int32_t>& places);
  void write_out();
  std::int64_t padded() const { return search_.columns.padded; }
  std::int64_t num_owned() const {
    return static_cast<std::int64_t>(layout_.row_ids.size());
  }

  const Search& search_;
  FilterTeam& team_;
  Workers& workers_;
  const int device_;
  const FilterBlocks blocks_;
  const FilterLayout layout_;
  Stream stream_;
  Exchange exchange_;
  DevicePoints points_;
  const std::unique_ptr<PairFilter> filter_;
  DeviceBuffer<std::int32_t> d_slot_places_, d_slots_, d_list_rows_,
      d_row_places_;
  DeviceBuffer<unsigned char> filter_rows_;
  DeviceBuffer<float> filter_values_;
  DeviceBuffer<std::int32_t> counts_;
  DeviceBuffer<float> thresholds_, bounds_;
  DeviceBuffer<Candidate> entries_;
  FilterWork work_;
  Cut cut_;
  FilterRounds rounds_;
  ExactStep exact_;
  DeviceBuffer<double> nearest_distance_;     ///< [owned x k]
  DeviceBuffer<std::int32_t> nearest_index_;
  Lists nearest_;
  DeviceBuffer<std::int32_t> redo_places_, redo_count_;
  AnswerWriter answer_;
  Event launch_done_[2];
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
