#pragma once

// Makes a graph by a filter where the points do not fit on the device in
// doubles. The filter's rows stay, with short lists, or come from the host's
// memory for a range of the lists at a time. Doubles come in panels, once to
// make the filter's rows and again for the exact step. Each phase holds its
// memory only while it runs: filter_phase.hpp or row_range_phase.hpp,
// redo_panels.hpp, rerank_phase.hpp.

#include <cstdint>
#include <memory>

#include "core/base/pieces.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/filter_phase.hpp"
#include "cuda/search/rerank_phase.hpp"
#include "cuda/search/row_range_phase.hpp"

namespace fsknn {
namespace cuda {

/// The part of one device; used as GraphByFilter is.
class GraphByFilterPanels {
 public:
  GraphByFilterPanels(const Search& search, FilterTeam& team, int own);
  GraphByFilterPanels(const GraphByFilterPanels&) = delete;
  GraphByFilterPanels& operator=(const GraphByFilterPanels&) = delete;
  ~GraphByFilterPanels() { wait(); }
  void wait() {
    from_.wait();
    cudaStreamSynchronize(stream_.get());
  }

  void run();

  const Stats& stats() const { return stats_; }
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  template <class Phase, class... More>
  bool begin(std::unique_ptr<Phase>& phase, More&... more);
  bool filter(FilteredGraph& found);
  void keep_wide(FilteredGraph& found, Unranked& unranked);
  bool redo(Unranked& unranked);

  const FilterLayout layout_;
  Stream stream_;
  Exchange exchange_;
  PanelStream from_;
  PanelBuffer panels_[2];
  const PanelsPart part_;
  FilterTeam& team_;
  const int own_;
  /// Other devices read its lists: after a failure it must live as long as this
  /// does.
  std::unique_ptr<FilterPhase> filter_phase_;
  std::unique_ptr<RowRangePhase> row_range_phase_;
  Clock::time_point start_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
