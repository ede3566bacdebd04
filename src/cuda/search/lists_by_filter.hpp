#pragma once

// The nearest by a filter, of points that a device holds. Rows gather
// candidates in lists; these are cut after each round, ranked by the contract's
// doubles at last, and made again where they overflowed. In one of three
// orders: a graph, on one device or several, where a pair is for both its
// points; queries, each device some of them; and groups (groups_by_filter.hpp).

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>

#include "cuda/device/transfer.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/redo_held.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// How many pairs the exact step made (ExactStep::counts).
class ExactCounter {
 public:
  ExactCounter() : counts_(kExactCounts) {}
  unsigned long long* data() { return counts_.data(); }
  void clear(const Stream& stream) { clear_from(counts_, 0, stream); }
  /// Since then; waits for the stream.
  double total(const Stream& stream) const {
    std::array<unsigned long long, kExactCounts> counts;
    download(counts.data(), counts_, kExactCounts, stream);
    stream.wait();
    return static_cast<double>(
        std::accumulate(counts.begin(), counts.end(), 0ull));
  }

 private:
  DeviceBuffer<unsigned long long> counts_;
};

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

/// A graph, the part of one device. Made and run on its worker; the parts of
/// all devices must outlive the work of each, since they read each other's
/// lists.
class GraphByFilter : public ListsByFilter {
 public:
  GraphByFilter(const Search& search, FilterTeam& team, int own);
  ~GraphByFilter() { wait(); }

  /// Finds and writes out the neighbours of the points that this device owns.
  void run();

  /// Pieces of work, by which progress is told, of all devices.
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  GraphByFilter(const Search& search, FilterTeam& team, int own,
                FilterLayout layout);

  FilterTeam& team_;
  const FilterLayout layout_;
  Exchange exchange_;
  DeviceBuffer<std::int32_t> list_rows_, row_places_;
};

/// Queries.
class QueriesByFilter : public ListsByFilter {
 public:
  QueriesByFilter(const Search& search, Workers& workers);
  ~QueriesByFilter() { wait(); }

  /// Finds and writes out the neighbours of these queries, by place.
  void run(std::int64_t first_row, std::int64_t end_row);

  /// Pieces of work, by which progress is told, for so many queries.
  static std::int64_t num_launches(const Search& search, std::int64_t num_rows);

 private:
  /// Queries that are done at a time.
  static std::int64_t most_rows(const Search& search) {
    return queries_at_a_time(search.rows.size(), search.plan.k);
  }
  bool batch(std::int64_t row0, std::int64_t num_rows);

  const FilterBlocks blocks_;
  DevicePoints own_rows_;
  DeviceBuffer<std::int32_t> column_places_, row_slots_, list_rows_;
  std::unique_ptr<FilterForm> row_form_;
};

}  // namespace cuda
}  // namespace fsknn
