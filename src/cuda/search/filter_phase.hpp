#pragma once

// The first phase of a graph whose points come in panels
// (graph_by_filter_panels.hpp). The filter's rows stay, with short lists, and
// the candidates wait for the exact step.

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

/// The inputs that all phases of one device's part read.
struct PanelsPart {
  const Search& search;
  Workers& workers;
  const FilterLayout& layout;
  const Stream& stream;
  Panels panels;
  std::int64_t num_points() const { return search.columns.size(); }
  const FilterStreaming& shape() const { return search.plan.streaming; }
  /// Returns the number of pairs that may wait if this many rows are
  /// recomputed: there must also be room for a panel, or for rows in doubles.
  std::int64_t room_for_pairs(std::int64_t num_redone) const;
};

/// Makes the points in a filter's form, a panel at a time: the part that the
/// first two phases share.
class PanelPhase {
 public:
  PanelPhase(const PanelPhase&) = delete;
  PanelPhase& operator=(const PanelPhase&) = delete;

  /// To be called after the rows were made. If it returns false, another phase
  /// starts with the next form.
  bool suits() const { return suits_; }
  const RowsInForm& rows() const { return filter_->rows(); }

 protected:
  /// Makes the filter in this form, or in one that may replace it. It learns
  /// from some of the points, before any of its rows are made, and is the same
  /// on every device.
  PanelPhase(const PanelsPart& part, const RowsInForm& rows);
  ~PanelPhase() = default;

  /// Makes all points' rows, and tests whether the form suits them. Waits for
  /// the stream. Returns whether to continue.
  bool make_all(PanelBuffer (&panels)[2], const FilterRows& to);
  /// Reports to the other devices; words, bytes: see learnt_form().
  void tell(LearntForms::Stage stage, const void* words, std::int64_t bytes);

  const PanelsPart& part_;
  const FilterStreaming& shape_;
  const RowsInForm asked_;
  const std::unique_ptr<PairFilter> filter_;
  std::vector<std::int32_t> own_places_;   ///< of owned points, in panels
  std::vector<std::int32_t> slot_places_;  ///< the same by slot; -1: padding
  /// By slot the panel place, and by panel place the slot.
  DeviceBuffer<std::int32_t> panel_places_, panel_slots_;

 private:
  bool suits_ = false;
};

/// The result of the phase.
struct FilteredGraph {
  WaitingList pairs;  ///< of all owned points
  /// Owned points without pairs, by their rows, ascending,
  std::vector<std::int64_t> redone;
  /// and the candidates that longer lists found for them, if any.
  WideCandidates wide;
};

/// Other devices read its lists. It must live until all have met after the last
/// round, or until none works any more.
class FilterPhase : public PanelPhase {
 public:
  /// rows: see PanelPhase.
  FilterPhase(const PanelsPart& part, const RowsInForm& rows,
              const FilterTeam& team, int own, Exchange& exchange);

  // To be called in this order. Each returns whether to continue, and waits for
  // the stream.

  /// Makes the points in the filter's form, a panel at a time, and empty lists
  /// if the form suits them.
  bool make_rows();
  /// Does the first round, whose lists are long, for some slots at a time.
  bool fill();
  /// Does the other rounds. After it no other device reads the lists.
  bool run(Stats& stats);
  /// Collects the candidates, and repeats the filter for rows that overflowed.
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
