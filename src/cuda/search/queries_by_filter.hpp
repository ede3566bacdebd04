#pragma once

// Queries against points by a filter, each device some of the queries: as a
// graph (graph_by_filter.hpp), but that a pair is for its query only.

#include <cstdint>
#include <memory>

#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/exact_counter.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// Made and run on one host thread, whose current device it uses. The points,
/// not the queries, must have been shuffled.
class QueriesByFilter {
 public:
  QueriesByFilter(const Search& search, Workers& workers);
  QueriesByFilter(const QueriesByFilter&) = delete;
  QueriesByFilter& operator=(const QueriesByFilter&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~QueriesByFilter() { cudaStreamSynchronize(stream_.get()); }

  /// Finds and writes out the neighbours of these queries, by place.
  void run(std::int64_t first_row, std::int64_t end_row);

  const Stats& stats() const { return stats_; }

  /// Pieces of work, by which progress is told, for so many queries.
  static std::int64_t num_launches(const Search& search, std::int64_t num_rows);

 private:
  void hold_form();
  bool batch(std::int64_t row0, std::int64_t num_rows);
  bool redo(std::int64_t row0);

  const Search& search_;
  const FilterBlocks blocks_;
  const std::int64_t most_rows_;  ///< at a time
  Stream stream_;
  StoredPoints& stored_;
  const DevicePoints& columns_;
  DevicePoints own_rows_;
  DeviceBuffer<std::int32_t> column_places_, row_slots_, list_rows_;
  FilterForm row_form_;
  CandidateStore candidates_;
  ListBuffer nearest_;  ///< of the queries at a time
  AnswerWriter answer_;
  // Of the queries that are being done.
  FilterPass pass_;
  ExactStep exact_;
  ExactCounter counter_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
