#pragma once

// Rows whose candidates overflowed, done again: by a wider filter, and what is
// too much for that too in the contract's doubles. Where rows come from and
// what becomes of what is found is for searches whose points are held
// (redo_held.hpp) and for those whose points come in panels (redo_panels.hpp).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/device/workers.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/search.hpp"
#include "cuda/search/wide_filter.hpp"

namespace fsknn {
namespace cuda {

/// Of each row: its place, and its slot in the search's lists.
struct RedoneRows {
  std::vector<std::int32_t> places, slots;
  std::int64_t size() const { return static_cast<std::int64_t>(places.size()); }
};

/// The rows by a wider filter, at most `most` at a time. bring(first, count)
/// gives those rows, prepared; take(first, count) deals with what was found for
/// them. Returns whether to go on.
template <class Bring, class Take>
bool filter_widely(WideFilter& filter, const RedoneRows& rows,
                   std::int64_t most, Bring bring, Take take) {
  most = std::min(most, filter.most_rows());
  for (std::int64_t first = 0; first < rows.size(); first += most) {
    const std::int64_t count = std::min(most, rows.size() - first);
    filter.begin(rows.slots.data() + first, rows.places.data() + first, count);
    if (!filter.run(bring(first, count))) return false;
    take(first, count);
  }
  return true;
}

/// Some rows against all points in the contract's doubles, a batch of them and
/// a chunk of the points at a time.
class DoubleRedo {
 public:
  /// most_columns: of a panel of points.
  DoubleRedo(const Search& search, Workers& workers, const Stream& stream,
             std::int64_t most_rows, std::int64_t most_columns)
      : search_(search),
        workers_(workers),
        stream_(stream),
        most_rows_(most_rows),
        chunk_(most_rows, most_columns, search.columns.padded, search.undo),
        lists_(most_rows, search.plan.k) {}

  /// bring(first, count) gives rows first .. of num_rows, ids their own
  /// numbers, or null where they are none of the points; for_points(use) calls
  /// use(panel) for all points and returns whether to go on; take(first, rows)
  /// deals with the rows' lists, and returns that too.
  template <class Bring, class ForPoints, class Take>
  bool run(std::int64_t num_rows, Bring bring, ForPoints for_points,
           Take take) {
    for (std::int64_t first = 0; first < num_rows; first += most_rows_) {
      const Panel rows = bring(first, std::min(most_rows_, num_rows - first));
      start_clear(lists_.lists(), rows.count, stream_.get());
      const auto meet = [&](const Panel& columns) {
        Selection selection = chunk_.selection(rows, columns, lists_.lists());
        selection.own_ids = rows.ids;
        start_distances(*search_.request.metric, chunk_.chunk(rows, columns),
                        stream_.get());
        start_selection(selection, stream_.get());
        pairs_ += static_cast<double>(rows.count) *
                  static_cast<double>(columns.count);
        return workers_.go_on();
      };
      if (!for_points(meet) || !take(first, rows)) return false;
    }
    return true;
  }

  const ListBuffer& lists() const { return lists_; }
  Lists view() { return lists_.lists(); }
  double pairs() const { return pairs_; }

 private:
  const Search& search_;
  Workers& workers_;
  const Stream& stream_;
  const std::int64_t most_rows_;
  ChunkBuffer chunk_;
  ListBuffer lists_;
  double pairs_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
