#pragma once

// Computes all pairs in the contract's doubles, chunk by chunk. Points come in
// panels, or stay on the devices for later searches.

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/rows/prepared.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/chunk_panels.hpp"
#include "cuda/search/point_store.hpp"

namespace fsknn {
namespace cuda {

/// The pairs to compute, and the settings that all devices share.
struct PairsWork {
  /// rows: the same object as columns for all pairs of these.
  PairsWork(const Request& asked, const PlacedPoints& of_rows,
            const PlacedPoints& of_columns, int exponent);

  const Request& request;
  const PlacedPoints& rows;
  const PlacedPoints& columns;
  RowRecipe prepare;
  DistanceRule rule;
  int num_threads = 1;          ///< of the host, for each device
  PointStore* store = nullptr;  ///< the store of columns; null: they come in
                                ///< panels
  std::int64_t side = 0;        ///< of a chunk
  double bytes_besides = 0.0;   ///< that a device holds for the results
  bool similarities = false;    ///< MetricEntry::similarity, not distances

  bool graph() const { return &rows == &columns; }
  /// In whole tiles, because panels of them are read so.
  PointsToStore stored() const;
};

/// Returns the side of chunks where points come in panels. Throws if none fits.
std::int64_t side_in_panels(const PairsWork& work, double bytes_usable,
                            int device);

/// Returns the side of chunks where points stay in the work's store; 0: there
/// is no room for all of them beside chunks that are large enough.
std::int64_t side_beside_points(const PairsWork& work, const UsedDevices& gpus,
                                double bytes_usable);

/// Returns the number of rows of chunks; there are num_chunks() chunks in all.
inline std::int64_t num_splits(const PairsWork& work) {
  return ceil_div(work.rows.size(), work.side);
}
inline std::int64_t num_chunks(const PairsWork& work) {
  const std::int64_t across = ceil_div(work.columns.size(), work.side);
  return work.graph() ? across * (across + 1) / 2 : num_splits(work) * across;
}

/// The part of one device. Constructed and run on one host thread.
class PairChunks {
 public:
  explicit PairChunks(const PairsWork& work);
  PairChunks(const PairChunks&) = delete;
  PairChunks& operator=(const PairChunks&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~PairChunks() { cudaStreamSynchronize(stream_.get()); }

  const Stream& stream() const { return stream_; }

  /// Calls use(rows, columns, chunk) for all chunks in the splits that `next`
  /// hands out, after the chunk was put on the stream: products for rows of
  /// length 1, otherwise distances or similarities. For all pairs of the same
  /// points, a chunk may have some pairs twice, and points with themselves: row
  /// < column, by places, is true for each pair once. `use` returns whether to
  /// continue.
  template <class Use>
  void run(std::atomic<std::int64_t>& next, Use use) {
    const std::int64_t num_rows = work_.rows.size();
    for (;;) {
      const std::int64_t row0 = next.fetch_add(1) * work_.side;
      if (row0 >= num_rows) break;
      const Panel rows = panels_.rows(
          Place{row0}, std::min(work_.side, num_rows - row0), stream_);
      const bool go_on = panels_.for_columns(
          Place{work_.graph() ? row0 : 0}, stream_, [&](const Panel& columns) {
            return use(rows, columns, make(rows, columns));
          });
      panels_.release_rows(stream_);
      if (!go_on) return;
    }
    panels_.check();
  }
  /// Returns the pairs of all chunks so far.
  double pairs() const { return pairs_; }

 private:
  Chunk make(const Panel& rows, const Panel& columns);

  const PairsWork& work_;
  Stream stream_;
  const DevicePoints* const held_;  ///< the columns, if they stay
  ChunkPanels panels_;
  ChunkBuffer chunk_;
  double pairs_ = 0.0;
};

}  // namespace cuda
}  // namespace fsknn
