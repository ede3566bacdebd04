#pragma once

// How a matrix is divided for transfer to a device, and an answer for transfer
// back. Plain C++: the plan uses it, and tests need no GPU.

#include <algorithm>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// The size of pieces of pinned memory. 8 MiB take 0.15 ms to a device, ten
/// times as long as starting the copy.
static constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20;

/// Eight threads prepare a row, so that this many rows at a time keep a device
/// busy.
static constexpr std::int64_t kEnoughRows = 2048;

/// Rows are prepared panel by panel. A panel of a column-major matrix has all
/// features of `rows` points, in whole cache lines. It is copied in pieces of
/// `piece_features` features. A panel of rows that are read one by one is one
/// piece.
struct PanelShape {
  PanelShape(std::int64_t num_points, std::int64_t num_features, bool by_column)
      : features(num_features) {
    const std::int64_t fit = kPieceBytes / 8 / num_features;
    if (by_column) {
      const std::int64_t all = (num_points + 7) / 8 * 8;
      rows = std::max<std::int64_t>(8, std::min(all, fit / 8 * 8));
      piece_features = std::max<std::int64_t>(
          1, std::min(num_features, kPieceBytes / 8 / rows));
    } else {
      rows = std::max<std::int64_t>(1, std::min(num_points, fit));
      piece_features = num_features;
    }
    pieces = (num_features + piece_features - 1) / piece_features;
    piece_bytes = std::max(kPieceBytes, rows * piece_features * 8);
    // One buffer is filled while another is processed.
    buffers = pieces == 1 ? 3 : 2;
  }
  std::int64_t features;
  std::int64_t rows;            ///< of a panel
  std::int64_t piece_features;  ///< of a piece
  std::int64_t pieces;          ///< of a panel
  std::int64_t piece_bytes;     ///< at most
  std::int64_t buffers;         ///< panels on the device

  std::int64_t panels(std::int64_t num_points) const {
    return (num_points + rows - 1) / rows;
  }
  std::int64_t panel_size() const { return rows * features; }
};

/// The memory for sorting rows: `rows` at a time, each in `width` entries, a
/// power of two; none where ranks are counted.
struct SortShape {
  /// 1,024 values need 1,024 x 1,024 comparisons, which take about as long as
  /// sorting.
  static constexpr std::int64_t most_counted = 1024;
  static constexpr std::int64_t tile = 2048;

  SortShape(std::int64_t most_rows, std::int64_t num_features) {
    if (num_features <= most_counted) return;
    width = tile;
    while (width < num_features) width *= 2;
    constexpr std::int64_t bytes = std::int64_t{48} << 20;
    rows = std::max<std::int64_t>(
        1, std::min({most_rows, bytes / 12 / width, std::int64_t{65535}}));
  }
  std::int64_t width = 0, rows = 0;
};

/// The pieces in which lists of neighbours are copied to the host. Matrices:
/// some ranks of some rows; edges: consecutive entries of any rows.
struct AnswerShape {
  AnswerShape(std::int64_t num_rows, std::int64_t k, bool as_edges) {
    const std::int64_t all = num_rows * k;
    if (as_edges) {
      entries = std::min(all, most_entries);
      num_pieces = entries == 0 ? 0 : (all + entries - 1) / entries;
    } else if (all > 0) {
      // Thousands of rows, so that each rank is a long range of its column.
      constexpr std::int64_t long_row_range = 4096;
      ranks = std::min(
          k, std::max<std::int64_t>(
                 1, most_entries / std::min(num_rows, long_row_range)));
      rows = std::min(num_rows, most_entries / ranks);
      entries = rows * ranks;
      num_pieces = (num_rows + rows - 1) / rows * ((k + ranks - 1) / ranks);
    }
    slots = std::min(most_slots, num_pieces);
  }
  /// The bytes of an index, a distance and a correlation.
  static constexpr std::int64_t entry_bytes = 20;
  static constexpr std::int64_t most_entries = kPieceBytes / entry_bytes;
  static constexpr std::int64_t most_slots = 4;

  std::int64_t entries = 0;          ///< of a piece, at most
  std::int64_t rows = 0, ranks = 0;  ///< of a piece of matrices
  std::int64_t num_pieces = 0;
  std::int64_t slots = 0;  ///< pieces in transfer at a time

  /// The bytes from one piece to the next on the device. Each starts with
  /// doubles, even after a piece with an odd number of entries.
  std::int64_t slot_bytes() const {
    constexpr std::int64_t aligned = 16;
    return (entries * entry_bytes + aligned - 1) / aligned * aligned;
  }
  /// The device memory of all slots.
  std::int64_t bytes_device() const { return slots * slot_bytes(); }
};

/// The bytes on each device for preparing rows, for any source.
inline double bytes_preparing(std::int64_t num_points,
                              std::int64_t num_features, bool ranked) {
  double most = 0;
  for (const bool by_column : {true, false}) {
    const PanelShape shape(num_points, num_features, by_column);
    double bytes = static_cast<double>(shape.buffers * shape.panel_size()) * 8;
    if (ranked) {
      const SortShape sort(shape.rows, num_features);
      bytes += static_cast<double>(sort.rows * sort.width) * 12;
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace cuda
}  // namespace fsknn
