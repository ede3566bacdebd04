#pragma once

// A graph by a filter, on one device or several, of points that each device
// holds: rounds of filtered pairs, the exact step over the candidates, and rows
// that overflowed done again.

#include <cstdint>
#include <memory>

#include "cuda/exact/answer.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/exact_counter.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// The part of one device. Made and run on its worker, whose current device it
/// uses; the parts of all devices must outlive the work of each, since they
/// read each other's lists. The points must have been shuffled: rows that stand
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
  void begin_lists();
  void begin_exact();
  void finish();
  bool redo();
  void write_out();

  const Search& search_;
  FilterTeam& team_;
  Workers& workers_;
  const FilterLayout layout_;
  Stream stream_;
  Exchange exchange_;
  StoredPoints& stored_;
  const DevicePoints& points_;
  DeviceBuffer<std::int32_t> d_list_rows_, d_row_places_;
  CandidateStore candidates_;
  FilterPass pass_;
  ExactStep exact_;
  ExactCounter counter_;
  ListBuffer nearest_;  ///< of owned points
  AnswerWriter answer_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
