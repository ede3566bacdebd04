#pragma once

// Finds the nearest by a filter, for points that a device holds. Rows gather
// candidates in lists. These are cut after each round, ranked at the end in the
// contract's doubles, and recomputed where they overflowed. There are three
// orders: a graph on one or several devices, where a pair serves both its
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

/// Counts the pairs that the exact step computed (ExactStep::counts).
class ExactCounter {
 public:
  ExactCounter() : counts_(kExactCounts) {}
  unsigned long long* data() { return counts_.data(); }
  void clear(const Stream& stream) { clear_from(counts_, 0, stream); }
  /// Returns the number since then; waits for the stream.
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

/// Constructed and used on one host thread, whose current device it uses. The
/// columns must have been shuffled, so that adjacent points are not near each
/// other, or be in the order of a tree.
class ListsByFilter {
 public:
  ListsByFilter(const ListsByFilter&) = delete;
  ListsByFilter& operator=(const ListsByFilter&) = delete;
  /// Waits until no work of this device is in progress. To be called before any
  /// of its memory is freed, also after a failure.
  void wait() { cudaStreamSynchronize(stream_.get()); }

  const Stats& stats() const { return stats_; }

 protected:
  /// The memory needed.
  struct Room {
    CandidateStore::Shape candidates;
    std::int64_t lists = 0;    ///< of k neighbours
    std::int64_t written = 0;  ///< rows of the answer, at a time
    std::int64_t lists_a_row = 1;
  };
  ListsByFilter(const Search& search, Workers& workers, const Room& room);
  ~ListsByFilter() = default;

  /// Puts the columns in the filter's form, in the store.
  void hold_form();
  /// Sets the inputs of pairs: a filter's rows of the columns, and the points
  /// of both sides in double. `rows` are the columns of a graph.
  void set_points(PairFilter& filter, const FilterRows& columns,
                  const DevicePoints& rows);
  /// Sets the slots, whose lists are empty or are filled in by the device.
  void set_slots(Slot first, Slot end);
  /// Then sets the filter's errors for the rounds and the exact step. Slots
  /// outside of first .. end - 1 accept no pairs. May wait for the stream.
  void begin_rounds(std::int64_t num_lists, Slot first = {0},
                    Slot end = {INT64_MAX});
  /// Finds the nearest of the candidates.
  void rank();
  /// Recomputes rows whose lists overflowed; slot_of() maps a place to its
  /// slot. Returns whether to continue.
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
  /// Returns the inputs of the correlations of lists; row_places: see
  /// CorrelationOf.
  CorrelationOf correlated(const DevicePoints& rows, std::int64_t first_row,
                           const std::int32_t* row_places) const {
    return columns_.correlations(rows.rows.data() + first_row * rows.padded,
                                 rows.sums.data() + first_row, row_places);
  }

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

/// The plan needs a tree of the points, which a sample does not favour, or
/// which the rows' form does not allow.
struct NoTree {};

/// The part of one device in a graph. Constructed and run on its worker. The
/// parts of all devices must outlive the work of each, since they read each
/// other's lists. With a tree they do not: each device finds all neighbours of
/// its own points, in one or several parts.
class GraphByFilter : public ListsByFilter {
 public:
  /// Throws NoTree.
  GraphByFilter(const Search& search, FilterTeam& team, int own);
  ~GraphByFilter() { wait(); }

  /// Finds and writes the neighbours of the points that this device owns.
  void run();

  /// Returns the pieces of work of all devices, for progress.
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  /// Some blocks that this device owns, and the rows of their points in the
  /// layout.
  struct Part {
    std::int64_t first_block, end_block, first_row, end_row;
    std::int64_t size() const { return end_row - first_row; }
  };

  static Room room_of(const Search& search, const FilterTeam& team, int own);
  void hold_columns();
  bool run_part(const Part& part);
  bool compare(const Part& part);

  FilterTeam& team_;
  FilterLayout layout_;
  std::vector<Part> parts_;
  Exchange exchange_;
  DeviceBuffer<std::int32_t> list_rows_, row_places_;
};

/// The part of one device in a search of queries.
class QueriesByFilter : public ListsByFilter {
 public:
  QueriesByFilter(const Search& search, Workers& workers);
  ~QueriesByFilter() { wait(); }

  /// Finds and writes the neighbours of these queries, by place.
  void run(std::int64_t first_row, std::int64_t end_row);

  /// Returns the pieces of work for this many queries, for progress.
  static std::int64_t num_launches(const Search& search, std::int64_t num_rows);

 private:
  /// Returns how many queries are processed at a time.
  static std::int64_t most_rows(const Search& search) {
    return queries_at_a_time(search.rows.size(), search.plan.k);
  }
  void meet_columns();
  bool batch(std::int64_t row0, std::int64_t num_rows);

  const FilterBlocks blocks_;
  DevicePoints own_rows_;
  DeviceBuffer<std::int32_t> row_slots_;  ///< [most_rows] 0, 1, ...
  std::unique_ptr<FilterForm> row_form_;
};

}  // namespace cuda
}  // namespace fsknn
