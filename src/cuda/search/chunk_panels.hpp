#pragma once

// The points of all pairs in doubles: a panel of rows at a time, against panels
// of columns. A device holds the points of a side, or they are streamed.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "cuda/prepare/panel_stream.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// The two sides, and the most points of a panel of each.
struct ChunkSides {
  const PlacedPoints& rows;
  const PlacedPoints& columns;       ///< the same object for all pairs of these
  const DevicePoints* held_rows;     ///< null: they are streamed
  const DevicePoints* held_columns;  ///< the same
  std::int64_t most_rows, most_columns;

  bool graph() const { return &rows == &columns; }
};

/// Used by one host thread, whose current device it uses.
class ChunkPanels {
 public:
  ChunkPanels(const ChunkSides& sides, const RowRecipe& prepare,
              int num_threads)
      : sides_(sides),
        rows_(sides.held_rows != nullptr ? 0 : sides.most_rows,
              sides.rows.padded),
        columns_{{streamed_columns(), sides.columns.padded},
                 {streamed_columns(), sides.columns.padded}} {
    if (sides.held_columns == nullptr)
      from_columns_ =
          std::make_unique<PanelStream>(sides.columns, prepare, num_threads);
    if (sides.held_rows == nullptr && !sides.graph())
      from_rows_ =
          std::make_unique<PanelStream>(sides.rows, prepare, num_threads);
  }

  /// Returns rows, which are valid until release_rows().
  Panel rows(Place first, std::int64_t count, const Stream& stream) {
    if (sides_.held_rows != nullptr)
      return sides_.held_rows->panel(first, count);
    PanelStream& from = from_rows_ != nullptr ? *from_rows_ : *from_columns_;
    from.fetch(first, count, rows_);
    return rows_.get(stream);
  }
  void release_rows(const Stream& stream) { rows_.release(stream); }

  /// Calls use(panel) for all columns from that place on. `use` returns whether
  /// to continue, and so does this.
  template <class Use>
  bool for_columns(Place first, const Stream& stream, Use use) {
    if (sides_.held_columns == nullptr)
      return for_panels(streamed(), stream, use, first);
    const std::int64_t end = sides_.columns.size();
    for (std::int64_t at = first.value; at < end; at += sides_.most_columns)
      if (!use(sides_.held_columns->panel(
              Place{at}, std::min(sides_.most_columns, end - at))))
        return false;
    return true;
  }

  /// Returns the columns where they are streamed.
  Panels streamed() { return {*from_columns_, columns_}; }

  /// Throws RangeFailure if a streamed point was out of range. To be called
  /// after the last panel.
  void check() {
    if (from_columns_ != nullptr) from_columns_->check();
    if (from_rows_ != nullptr) from_rows_->check();
  }

 private:
  std::int64_t streamed_columns() const {
    return sides_.held_columns != nullptr ? 0 : sides_.most_columns;
  }

  const ChunkSides sides_;
  PanelBuffer rows_, columns_[2];
  std::unique_ptr<PanelStream> from_columns_;  ///< null if they are held
  std::unique_ptr<PanelStream> from_rows_;     ///< also null for a graph
};

}  // namespace cuda
}  // namespace fsknn
