#pragma once

// A graph by a filter where the points do not fit the device in doubles: the
// filter's rows stay, with short lists, and doubles come in panels, once to make
// the filter's rows and again for the exact step.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/exact/answer.cuh"
#include "cuda/search/graph_by_filter.cuh"
#include "cuda/prepare/panel_stream.cuh"
#include "cuda/exact/settle.cuh"
#include "cuda/search/streamed_wide.cuh"

namespace fsknn {
namespace cuda {

/// The part of one device; used as GraphByFilter is.
class GraphByFilterPanels {
 public:
  GraphByFilterPanels(const Search& search, FilterTeam& team, int own);
  GraphByFilterPanels(const GraphByFilterPanels&) = delete;
  GraphByFilterPanels& operator=(const GraphByFilterPanels&) = delete;
  ~GraphByFilterPanels() { wait(); }
  void wait() { cudaStreamSynchronize(stream_.get()); }

  void run();

  const Stats& stats() const { return stats_; }
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  bool make_rows();
  bool make_all_rows();
  bool fill();
  bool filter();
  void collect();
  bool redo_widely();
  void keep_wide(const std::vector<std::int32_t>& counts,
                 const std::vector<std::int32_t>& all_columns);
  void let_go();
  bool redo();
  bool settle();
  bool settle_panel(PanelBuffer& buffer);
  void write_out(const Panel& panel, PanelBuffer& buffer);
  std::int64_t owned_before(std::int64_t rank) const;
  std::int64_t num_owned() const {
    return static_cast<std::int64_t>(layout_.row_ids.size());
  }
  std::int64_t num_points() const { return search_.columns.size(); }
  double bytes_held() const;
  std::int64_t room_for_pairs() const;

  const Search& search_;
  FilterTeam& team_;
  Workers& workers_;
  const FilterStreaming shape_;
  const FilterLayout layout_;
  const FilterRounds rounds_;
  std::vector<std::int32_t> own_ranks_;
  Stream stream_;
  Exchange exchange_;
  PanelStream from_;
  PanelBuffer panels_[2];
  std::unique_ptr<PairFilter> filter_;
  DeviceBuffer<std::int32_t> ids_, slot_places_, slot_ranks_, rank_slots_,
      rank_ids_;
  DeviceBuffer<std::int32_t> own_slots_, d_own_ranks_, counts_;
  DeviceBuffer<float> thresholds_, bounds_;
  DeviceBuffer<unsigned char> filter_rows_;
  DeviceBuffer<float> filter_values_;
  DeviceBuffer<Candidate> entries_;
  DeviceBuffer<std::int32_t> redo_places_, redo_count_;
  FilterWork work_;
  Cut cut_;
  DeviceBuffer<std::int64_t> first_pair_;
  DeviceBuffer<std::int32_t> pair_columns_;
  DeviceBuffer<double> pair_values_;
  WaitingPairs pairs_;
  std::int32_t most_pairs_ = 1;
  // The same of owned points that were filtered again.
  std::vector<std::int32_t> wide_own_, wide_ranks_;  ///< ascending
  DeviceBuffer<std::int32_t> d_wide_own_, d_wide_ranks_, wide_columns_;
  DeviceBuffer<std::int64_t> wide_first_;
  DeviceBuffer<double> wide_values_;
  WaitingPairs wide_pairs_;
  std::int32_t most_wide_pairs_ = 1;
  // Of owned points that were done in doubles, ascending: k distances, numbers (and
  // correlations) of each.
  std::vector<std::int64_t> redone_;
  std::vector<double> redone_distance_, redone_correlation_;
  std::vector<std::int32_t> redone_index_;
  std::unique_ptr<AnswerWriter> answer_;
  std::int64_t write_rows_ = 0;   ///< written out at a time
  DeviceBuffer<double> lists_;    ///< where they do not fit what stays
  Event launch_done_[2];
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
