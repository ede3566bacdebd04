#pragma once

// Queries against points by a filter, each device some of the queries: as a
// graph (graph_by_filter.hpp), but that a pair is for its query only.

#include <cstdint>

#include "cuda/search/lists_by_filter.hpp"

namespace fsknn {
namespace cuda {

/// Made and run on one host thread, whose current device it uses.
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
