#pragma once

// The first phase of a graph whose points come in panels
// (graph_by_filter_panels.hpp) where even the filter's rows do not fit on the
// device. They are in the host's memory, in the order of their slots. A range
// of them and its lists are on the device at a time. All columns pass in
// panels: one is copied while the previous one is compared. Candidates wait in
// the host's memory.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/plan/row_ranges.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/filter_phase.hpp"

namespace fsknn {
namespace cuda {

/// The part of one device: ranges of the slots that it owns. Devices share only
/// the filter's rows.
class RowRangePhase : public PanelPhase {
 public:
  /// rows: see PanelPhase.
  RowRangePhase(const PanelsPart& part, const RowsInForm& rows,
                FilterTeam& team, int own);
  ~RowRangePhase();

  // To be called in this order. Each returns whether to continue, and waits for
  // the stream.

  /// Makes the points in the filter's form in the host's memory, a panel at a
  /// time. After it all devices have made theirs.
  bool make_rows();
  /// Processes all ranges, and again the rows whose lists overflowed, with
  /// longer ones.
  bool run(FilteredGraph& found, Stats& stats);

  /// Returns the approximate number for all devices.
  static std::int64_t num_launches(const Search& search);

 private:
  /// The lists of the rows of a range, which are in the first slots of rows_.
  struct RowRange {
    CandidateStore& lists;
    std::int64_t num_slots;  ///< whole blocks
  };

  bool make_room_on_host();
  bool find(std::int64_t first_block, std::int64_t num_blocks);
  bool find_widely(FilteredGraph& found);
  bool meet_all(const RowRange& row_range);
  void begin_launch(const RowRangeLaunch& launch, FilterWork& work);
  std::int64_t end_launch(const RowRangeLaunch& launch);
  void copy_panel(std::int64_t panel);
  std::vector<std::int32_t> take(const RowRange& row_range, std::int32_t most,
                                 std::vector<std::int32_t>& columns);
  void form_rows(const std::vector<std::int32_t>& ids, std::int64_t first,
                 std::int64_t count);
  WaitingList gather();

  FilterTeam& team_;
  const int own_;
  const FilterBlocks blocks_;
  const std::int64_t block_bytes_;  ///< of the filter's rows
  Stream copies_;
  const int multiprocessors_ = multiprocessors_here();

  // For all columns: the filter's values besides rows, and their numbers.
  DeviceBuffer<float> values_;
  DeviceBuffer<std::int32_t> ids_;

  // Two panels of the filter's rows.
  DeviceBuffer<unsigned char> panels_[2];
  Event ready_[2], free_[2];

  // A range of rows, and the same memory for longer lists.
  FilterForm rows_;
  DeviceBuffer<Candidate> entries_;
  CandidateStore lists_;
  DeviceBuffer<ListedJob> jobs_;
  DeviceBuffer<std::int32_t> from_slots_;
  DeviceBuffer<std::int64_t> first_;

  // For owned points, by their rows: the number of candidates, and the position
  // of the first of them, in the order of the ranges.
  std::vector<std::int32_t> counts_;
  std::vector<std::int64_t> found_at_;
  std::vector<std::int32_t> found_;
};

}  // namespace cuda
}  // namespace fsknn
