#pragma once

// A chunk of distances between two panels of points, in memory of its own.

#include <cstdint>

#include "cuda/device/resources.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/prepare/panel_stream.hpp"

namespace fsknn {
namespace cuda {

/// Memory for a chunk on the current device.
class ChunkBuffer {
 public:
  /// For chunks of at most this many rows and columns. padded: features of a
  /// row; undo: removes the matrix's scaling; transposed: also holds transposed
  /// chunks, from which columns select.
  ChunkBuffer(std::int64_t most_rows, std::int64_t most_columns,
              std::int64_t padded, LastStep undo, bool transposed = false)
      : stride_(most_columns),
        transposed_stride_(most_rows),
        padded_(padded),
        undo_(undo),
        distances_(most_rows * most_columns),
        transposed_(transposed ? most_rows * most_columns : 0) {}

  /// Returns the chunk of these rows and columns.
  Chunk chunk(const Panel& rows, const Panel& columns) {
    Chunk chunk;
    chunk.rows = rows.rows;
    chunk.row_sums = rows.sums;
    chunk.columns = columns.rows;
    chunk.column_sums = columns.sums;
    chunk.num_rows = rows.count;
    chunk.num_columns = columns.count;
    chunk.padded = padded_;
    chunk.undo = undo_;
    chunk.distances = distances_.data();
    chunk.stride = stride_;
    return chunk;
  }
  /// Returns the same with its transpose, for the lists of the columns.
  Chunk chunk_for_both(const Panel& rows, const Panel& columns) {
    Chunk both = chunk(rows, columns);
    both.transposed = transposed_.data();
    both.transposed_stride = transposed_stride_;
    return both;
  }
  /// Returns the chunk of a panel with itself.
  Chunk own_chunk(const Panel& points) {
    Chunk own = chunk(points, points);
    own.transposed = own.distances;
    own.transposed_stride = own.stride;
    own.same = true;
    return own;
  }

  /// Returns the selection of the nearest of each row of that chunk, without
  /// the exclusion of a point from its own neighbours.
  Selection selection(const Panel& rows, const Panel& columns,
                      const Lists& lists) const {
    Selection selection;
    selection.distances = distances_.data();
    selection.stride = stride_;
    selection.num_rows = rows.count;
    selection.num_columns = columns.count;
    selection.column_ids = columns.ids;
    selection.self = -rows.count - 1;
    selection.lists = lists;
    return selection;
  }

  /// Returns the selection of the nearest of each column, as rows of the
  /// transpose.
  Selection transposed_selection(const Panel& rows, const Panel& columns,
                                 const Lists& lists) const {
    Selection selection = this->selection(columns, rows, lists);
    selection.distances = transposed_.data();
    selection.stride = transposed_stride_;
    return selection;
  }

 private:
  const std::int64_t stride_, transposed_stride_, padded_;
  const LastStep undo_;
  DeviceBuffer<double> distances_;   ///< [most_rows x most_columns]
  DeviceBuffer<double> transposed_;  ///< [most_columns x most_rows] or nothing
};

/// Memory for the k nearest of each of some rows, on the current device.
class ListBuffer {
 public:
  ListBuffer(std::int64_t num_rows, std::int64_t k)
      : k_(k), distance_(num_rows * k), index_(num_rows * k) {}
  /// Returns the lists from this row on.
  Lists lists(std::int64_t first_row = 0) {
    Lists lists;
    lists.distance = distance_.data() + first_row * k_;
    lists.index = index_.data() + first_row * k_;
    lists.k = k_;
    return lists;
  }
  const DeviceBuffer<double>& distance() const { return distance_; }
  const DeviceBuffer<std::int32_t>& index() const { return index_; }

 private:
  const std::int64_t k_;
  DeviceBuffer<double> distance_;  ///< [num_rows x k]
  DeviceBuffer<std::int32_t> index_;
};

}  // namespace cuda
}  // namespace fsknn
