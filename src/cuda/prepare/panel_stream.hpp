#pragma once

// Streams points that do not fit on a device: they are prepared repeatedly, a
// panel at a time, while kernels work on the previous panel (Arefin 2012 leaves
// data chunking to the future; Dashti 2013, chapter 4).

#include <cstdint>
#include <memory>

#include "cuda/device/resources.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {

/// Prepared points in the order of their places. Device memory.
struct Panel {
  const double* rows = nullptr;  ///< [count x padded], rounded up to whole
                                 ///< tiles
  const double* sums = nullptr;  ///< [count]
  /// [count]: the user's numbers from 0, or PlacedPoints::self.
  const std::int32_t* ids = nullptr;
  Place first = {0};  ///< the first one's
  std::int64_t count = 0;

  Place end() const { return {first.value + count}; }
};

/// Memory for a panel on the current device.
class PanelBuffer {
 public:
  PanelBuffer(std::int64_t most_rows, std::int64_t padded);
  std::int64_t most_rows() const { return ids_.size(); }

  /// Work that is put on `stream` from now on may read the panel.
  Panel get(const Stream& stream) const {
    ready_.hold(stream);
    return panel_;
  }
  /// The work put on `stream` so far must finish before the next panel arrives.
  void release(const Stream& stream) { free_.record(stream); }

  /// Returns the panel's memory and its size in doubles, for other use on the
  /// stream that read the panel, until the panel is released.
  double* memory() { return rows_.data(); }
  std::int64_t size() const { return rows_.size(); }

 private:
  friend class PanelStream;
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<std::int32_t> ids_;
  Panel panel_;
  Event ready_, free_;
};

/// Copies panels of one set of points to the current device. Used by one host
/// thread. The points must be in their own order (not shuffled).
class PanelStream {
 public:
  /// most_rows: see Preparer.
  PanelStream(const PlacedPoints& points, const RowRecipe& recipe,
              int num_threads, std::int64_t most_rows = 0);
  PanelStream(const PanelStream&) = delete;
  PanelStream& operator=(const PanelStream&) = delete;
  ~PanelStream() { wait(); }

  /// Announces that the points from place `first` on will be fetched, `rows` at
  /// a time up to the last: the host then works ahead.
  void expect(Place first, std::int64_t rows);

  /// Copies the points at places first .. first + count - 1 into the buffer,
  /// once it is free. Returns when the host's part is finished.
  void fetch(Place first, std::int64_t count, PanelBuffer& to);

  /// Does the same for the points with these numbers (ascending).
  void fetch_some(const std::int32_t* ids, std::int64_t count, PanelBuffer& to);

  /// Throws RangeFailure if a row was out of range. To be called after the last
  /// panel.
  void check() { preparer_.check(); }

  /// Waits until no copy to a buffer is in progress, also after a failure.
  void wait() { cudaStreamSynchronize(copies_.get()); }

  std::int64_t size() const { return points_.size(); }
  const PlacedPoints& points() const { return points_; }
  /// [num_points] the place of each point, -1: none. Device memory; null: a
  /// point's number is its place.
  const std::int32_t* places() const { return places_.data(); }

 private:
  Preparer::Range range(Place first, std::int64_t count) const;
  void finish(std::int64_t count, PanelBuffer& to);

  const PlacedPoints& points_;
  Place expected_ = {-1};           ///< the place to fetch next, with
  std::int64_t expected_rows_ = 0;  ///< this many rows, or the rest
  int device_ = 0;
  Stream copies_;
  DeviceBuffer<std::int32_t> places_;
  Preparer preparer_;
};

/// Points that are streamed, through two buffers.
struct Panels {
  PanelStream& from;
  PanelBuffer (&buffers)[2];
};

/// Calls use(panel) for all points from place `from_place` on: a panel is
/// copied while the work that `use` put on `stream` for the previous one runs.
/// `use` returns whether to continue, and so does this.
template <class Use>
bool for_panels(const Panels& panels, const Stream& stream, Use use,
                Place from_place = {0}) {
  PanelStream& from = panels.from;
  PanelBuffer(&buffers)[2] = panels.buffers;
  const std::int64_t rows = buffers[0].most_rows(), end = from.size();
  const auto count = [&](std::int64_t first) {
    return end - first < rows ? end - first : rows;
  };
  std::int64_t first = from_place.value;
  if (first >= end) return true;
  from.expect(from_place, rows);
  from.fetch(from_place, count(first), buffers[0]);
  for (int now = 0; first < end; first += rows, now ^= 1) {
    const bool go_on = use(buffers[now].get(stream));
    buffers[now].release(stream);
    if (!go_on) return false;
    const std::int64_t next = first + rows;
    if (next < end) from.fetch(Place{next}, count(next), buffers[now ^ 1]);
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
