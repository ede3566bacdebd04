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

/// Of each owned point, where panels bring it; and by where panels bring a
/// point its slot.
std::vector<std::int32_t> panel_places_of(const FilterLayout& layout,
                                          const PlacedPoints& in_panels);
std::vector<std::int32_t> panel_slots_of(const FilterLayout& layout,
                                         const PointOrder& order,
                                         const PointOrder& in_panels);

/// The filter in this form, or in one that may take its place: learnt from some
/// of the points, before any of its rows are made. The same on every device.
std::unique_ptr<PairFilter> filter_of_panels(const PanelsPart& part,
                                             const RowsInForm& rows);

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
class FilterPhase {
 public:
  /// rows: see filter_of_panels().
  FilterPhase(const PanelsPart& part, const RowsInForm& rows,
              const FilterTeam& team, int own, Exchange& exchange);
  FilterPhase(const FilterPhase&) = delete;
  FilterPhase& operator=(const FilterPhase&) = delete;

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

  /// After make_rows(). If not, another phase, of what takes the form's place,
  /// begins anew.
  bool suits() const { return suits_; }
  const RowsInForm& rows() const { return filter_->rows(); }

  const CandidateLists& lists() const { return candidates_.lists(); }

 private:
  bool make_all_rows();
  bool collect_widely(FilteredGraph& found, Stats& stats);

  const PanelsPart& part_;
  const int team_size_;
  const FilterStreaming& shape_;
  const std::vector<std::int32_t> own_places_;  ///< in panels
  const RowsInForm asked_;
  const std::unique_ptr<PairFilter> filter_;
  bool suits_ = false;
  FilterForm form_;
  CandidateStore candidates_;
  /// By slot its point's panel place, by panel place the slot, and the slots of
  /// owned points.
  DeviceBuffer<std::int32_t> panel_places_, panel_slots_, own_slots_;
  FilterPass pass_;
};

}  // namespace cuda
}  // namespace fsknn
