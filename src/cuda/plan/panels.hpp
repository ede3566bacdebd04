#pragma once

// How a matrix is cut up on its way to a device, and an answer on its way back.
// Plain C++: the plan counts with it, and it is tested without a GPU.

#include <algorithm>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// Pinned memory comes in pieces of this size: 8 MiB take 0.15 ms to a device,
/// ten times what starting the copy takes.
static constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20;

/// Eight threads prepare a row: from so many rows at a time on a device is
/// busy.
static constexpr std::int64_t kEnoughRows = 2048;

/// Rows are prepared a panel at a time. A panel of a column-major matrix is all
/// features of `rows` points, whole cache lines of them; it travels in pieces
/// of `piece_features` features. A panel of rows that are read one by one is
/// one piece.
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
    // One is filled while another one is worked on.
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

/// What sorting rows takes: `rows` at a time, each in `width` places, a power
/// of two; none where ranks are counted.
struct SortShape {
  /// 1,024 values need 1,024 x 1,024 comparisons, about what sorting takes.
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

/// Lists of neighbours on their way to the host, a piece at a time. Matrices:
/// some ranks of some rows; edges: entries as they stand, whatever their row.
struct AnswerShape {
  AnswerShape(std::int64_t num_rows, std::int64_t k, bool as_edges) {
    const std::int64_t all = num_rows * k;
    if (as_edges) {
      entries = std::min(all, most_entries);
      num_pieces = entries == 0 ? 0 : (all + entries - 1) / entries;
    } else if (all > 0) {
      // Thousands of rows, so that each rank is a long stretch of its column.
      constexpr std::int64_t long_stretch = 4096;
      ranks =
          std::min(k, std::max<std::int64_t>(
                          1, most_entries / std::min(num_rows, long_stretch)));
      rows = std::min(num_rows, most_entries / ranks);
      entries = rows * ranks;
      num_pieces = (num_rows + rows - 1) / rows * ((k + ranks - 1) / ranks);
    }
    slots = std::min(most_slots, num_pieces);
  }
  /// An index, a distance and a correlation.
  static constexpr std::int64_t entry_bytes = 20;
  static constexpr std::int64_t most_entries = kPieceBytes / entry_bytes;
  static constexpr std::int64_t most_slots = 4;

  std::int64_t entries = 0;          ///< of a piece, at most
  std::int64_t rows = 0, ranks = 0;  ///< of a piece of matrices
  std::int64_t num_pieces = 0;
  std::int64_t slots = 0;  ///< pieces that are under way at a time

  /// From one piece to the next on the device. Each starts with doubles, also
  /// where a piece has an odd number of entries.
  std::int64_t slot_bytes() const {
    constexpr std::int64_t aligned = 16;
    return (entries * entry_bytes + aligned - 1) / aligned * aligned;
  }
  /// Device memory that it takes.
  std::int64_t bytes_device() const { return slots * slot_bytes(); }
};

/// Bytes that preparing holds on each device, whatever the source.
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
