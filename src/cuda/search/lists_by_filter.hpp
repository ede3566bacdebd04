#pragma once

// The nearest by a filter, of points that a device holds: what its schedules, a
// graph (graph_by_filter.hpp), queries (queries_by_filter.hpp) and groups
// (groups_by_filter.hpp), have in common. Rows gather candidates in lists;
// these are cut after each round, ranked by the contract's doubles at last, and
// made again where they overflowed.

#include <cstdint>

#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/exact_counter.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/redo_held.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// Made and used on one host thread, whose current device it uses. The columns
/// must have been shuffled: points that stand together must not be near.
class ListsByFilter {
 public:
  ListsByFilter(const ListsByFilter&) = delete;
  ListsByFilter& operator=(const ListsByFilter&) = delete;
  /// Until nothing of this device's work is under way: before any of its memory
  /// goes, after a failure, too.
  void wait() { cudaStreamSynchronize(stream_.get()); }

  const Stats& stats() const { return stats_; }

 protected:
  /// What there is to be room for.
  struct Room {
    CandidateStore::Shape candidates;
    std::int64_t lists = 0;    ///< of k neighbours
    std::int64_t written = 0;  ///< rows of the answer, at a time
    std::int64_t lists_a_row = 1;
  };
  ListsByFilter(const Search& search, Workers& workers, const Room& room);
  ~ListsByFilter() = default;

  /// The columns in the filter's form, in the store.
  void hold_form();
  /// What pairs are made of: a filter's rows of the columns, and the points of
  /// both sides in double, `rows` the columns of a graph.
  void set_points(PairFilter& filter, const FilterRows& columns,
                  const DevicePoints& rows);
  /// Of these slots, whose lists are empty, or filled in by the device.
  void set_slots(Slot first, Slot end);
  /// Then: the filter's errors, and what rounds and the exact step are told of
  /// them. May wait for the stream.
  void begin_rounds(std::int64_t num_lists);
  /// The nearest of the candidates.
  void rank();
  /// Rows whose lists overflowed, of which slot_of() tells the slot of a place.
  /// Returns whether to go on.
  template <class SlotOf>
  bool redo(const DevicePoints& rows, SlotOf slot_of) {
    RedoneRows redone;
    redone.places = candidates_.to_redo(stream_);
    for (const std::int32_t place : redone.places)
      redone.slots.push_back(slot_of(place));
    return redo_held({search_,
                      pass_,
                      exact_,
                      candidates_.all_lists(),
                      rows,
                      columns_,
                      {},
                      &stored_},
                     redone, stream_, stats_);
  }
  /// What correlations of lists are made from; row_places: see CorrelationOf.
  CorrelationOf correlated(const DevicePoints& rows, std::int64_t first_row,
                           const std::int32_t* row_places) const;

  const Search& search_;
  Workers& workers_;
  Stream stream_;
  StoredPoints& stored_;
  const DevicePoints& columns_;
  CandidateStore candidates_;
  ListBuffer nearest_;
  AnswerWriter answer_;
  FilterPass pass_;
  ExactStep exact_;
  ExactCounter counter_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
