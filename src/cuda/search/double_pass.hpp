#pragma once

// Compares rows with points in the contract's doubles, for lists of the
// nearest: the rows that a filter left, and two blocks. The caller supplies
// rows and points, and receives the lists.

#include <algorithm>
#include <cstdint>

#include "cuda/device/two_under_way.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/prepare/panel_stream.hpp"
#include "cuda/search/chunk_buffer.hpp"

namespace fsknn {
namespace cuda {

/// The kind of lists.
struct DoubleLists {
  const MetricEntry& metric;
  std::int64_t padded, k;
  LastStep undo;  ///< takes off the matrix's scaling
};

/// Processes a batch of rows and a chunk of the points at a time.
class DoublePass {
 public:
  /// most_columns: of a panel of points.
  DoublePass(const DoubleLists& of, Workers& workers, const Stream& stream,
             std::int64_t most_rows, std::int64_t most_columns)
      : metric_(of.metric),
        workers_(workers),
        stream_(stream),
        most_rows_(most_rows),
        chunk_(most_rows, most_columns, of.padded, of.undo),
        lists_(most_rows, of.k) {}

  /// bring(first, count) returns rows first .. of num_rows, where ids are their
  /// own numbers, or null if they are not among the points. for_points(use)
  /// calls use(panel) for all points and returns whether to continue.
  /// take(first, rows) receives the rows' lists, and returns that too.
  template <class Bring, class ForPoints, class Take>
  bool run(std::int64_t num_rows, Bring bring, ForPoints for_points,
           Take take) {
    for (std::int64_t first = 0; first < num_rows; first += most_rows_) {
      const Panel rows = bring(first, std::min(most_rows_, num_rows - first));
      start_clear(lists_.lists(), rows.count, stream_.get());
      const auto meet = [&](const Panel& columns) {
        Selection selection = chunk_.selection(rows, columns, lists_.lists());
        selection.own_ids = rows.ids;
        start_distances(metric_, chunk_.chunk(rows, columns), stream_.get());
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
  const MetricEntry& metric_;
  Workers& workers_;
  const Stream& stream_;
  const std::int64_t most_rows_;
  ChunkBuffer chunk_;
  ListBuffer lists_;
  double pairs_ = 0;
};

/// Calls use(panel) for at most `most` points of a panel at a time, two such in
/// progress. `use` returns whether to continue, and so does this.
template <class Use>
bool for_parts(const Panel& all, std::int64_t padded, std::int64_t most,
               const Stream& stream, Use use) {
  TwoUnderWay under_way;
  for (std::int64_t at = 0; at < all.count; at += most) {
    Panel some = all;
    some.rows += at * padded;
    some.sums += at;
    some.ids += at;
    some.first.value += at;
    some.count = std::min(most, all.count - at);
    under_way.begin();
    if (!use(some)) return false;
    under_way.end(stream);
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
