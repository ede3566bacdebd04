#pragma once

// The first phase of a graph whose points come in panels
// (graph_by_filter_panels.hpp): the filter's rows stay, with short lists, and
// leave candidates that wait for the exact step.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/search/candidate_store.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/redo_panels.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/waiting_list.hpp"

namespace fsknn {
namespace cuda {

/// What all phases of one device's part read.
struct PanelsPart {
  const Search& search;
  Workers& workers;
  const FilterLayout& layout;
  const Stream& stream;
  Panels panels;
  std::int64_t num_points() const { return search.columns.size(); }
  const FilterStreaming& shape() const { return search.plan.streaming; }
  /// Pairs that may wait where so many rows are to be redone: besides them
  /// something has to stay, or rows to be done in doubles.
  std::int64_t room_for_pairs(std::int64_t num_redone) const;
};

/// The points in a filter's form, a panel at a time: what the two first phases
/// have in common.
class PanelPhase {
 public:
  PanelPhase(const PanelPhase&) = delete;
  PanelPhase& operator=(const PanelPhase&) = delete;

  /// After the rows were made. If not, another phase, of what takes the form's
  /// place, begins anew.
  bool suits() const { return suits_; }
  const RowsInForm& rows() const { return filter_->rows(); }

 protected:
  /// The filter in this form, or in one that may take its place: learnt from
  /// some of the points, before any of its rows are made. The same on every
  /// device.
  PanelPhase(const PanelsPart& part, const RowsInForm& rows);
  ~PanelPhase() = default;

  /// All points, and whether the form suits them. Waits for the stream. Returns
  /// whether to go on.
  bool make_all(PanelBuffer (&panels)[2], const FilterRows& to);
  /// Tells the other devices; words, bytes: see learnt_form().
  void tell(LearntForms::Stage stage, const void* words, std::int64_t bytes);

  const PanelsPart& part_;
  const FilterStreaming& shape_;
  const RowsInForm asked_;
  const std::unique_ptr<PairFilter> filter_;
  std::vector<std::int32_t> own_places_;   ///< of owned points, in panels
  std::vector<std::int32_t> slot_places_;  ///< the same by slot; -1: padding
  /// By slot that, and by where panels bring a point its slot.
  DeviceBuffer<std::int32_t> panel_places_, panel_slots_;

 private:
  bool suits_ = false;
};

/// What the phase leaves.
struct FilteredGraph {
  WaitingList pairs;  ///< of all owned points
  /// Owned points without pairs, by their rows, ascending,
  std::vector<std::int64_t> redone;
  /// and what longer lists found for them; nothing where there are none.
  WideCandidates wide;
};

/// Other devices read its lists: it must live until all have met after the last
/// round, or until none works any more.
class FilterPhase : public PanelPhase {
 public:
  /// rows: see PanelPhase.
  FilterPhase(const PanelsPart& part, const RowsInForm& rows,
              const FilterTeam& team, int own, Exchange& exchange);

  // In this order. Each returns whether to go on, and waits for the stream.

  /// The points in the filter's form, a panel at a time, and, if that suits
  /// them, empty lists.
  bool make_rows();
  /// The first round, whose lists are long, for some slots at a time.
  bool fill();
  /// The other rounds. After it no other device reads the lists.
  bool run(Stats& stats);
  /// The candidates, and again those of rows that overflowed.
  bool collect(FilteredGraph& found, Stats& stats);

  const CandidateLists& lists() const { return candidates_.lists(); }

 private:
  bool make_all_rows();
  bool collect_widely(FilteredGraph& found, Stats& stats);

  const int team_size_;
  FilterForm form_;
  CandidateStore candidates_;
  DeviceBuffer<std::int32_t> own_slots_;  ///< of owned points
  FilterPass pass_;
};

}  // namespace cuda
}  // namespace fsknn
