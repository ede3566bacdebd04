#pragma once

// Points that do not fit a device: prepared again and again, a panel at a time,
// while kernels work on the panel before (Arefin 2012 leaves data chunking to
// the future; Dashti 2013, chapter 4).

#include <cstdint>
#include <memory>

#include "cuda/device/resources.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {

/// Prepared points in the order of their places. Device memory.
struct Panel {
  const double* rows = nullptr;  ///< [count x padded], and whole tiles
  const double* sums = nullptr;  ///< [count]
  /// [count]: the user's numbers from 0, or PlacedPoints::self.
  const std::int32_t* ids = nullptr;
  Place first = {0};  ///< the first one's
  std::int64_t count = 0;

  Place end() const { return {first.value + count}; }
};

/// Room for a panel on the current device.
class PanelBuffer {
 public:
  PanelBuffer(std::int64_t most_rows, std::int64_t padded);
  std::int64_t most_rows() const { return ids_.size(); }

  /// Work put on `stream` from here on may read the panel.
  Panel get(const Stream& stream) const {
    ready_.hold(stream);
    return panel_;
  }
  /// What was put on `stream` so far has to be over before the next panel
  /// comes.
  void release(const Stream& stream) { free_.record(stream); }

  /// Its memory, for other use on the stream that read the panel, until it is
  /// released; so many doubles.
  double* memory() { return rows_.data(); }
  std::int64_t size() const { return rows_.size(); }

 private:
  friend class PanelStream;
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<std::int32_t> ids_;
  Panel panel_;
  Event ready_, free_;
};

/// Brings panels of one set of points to the current device. Used by one host
/// thread. The points must be in their own order (not shuffled).
class PanelStream {
 public:
  /// most_rows: see Preparer.
  PanelStream(const PlacedPoints& points, const RowRecipe& recipe,
              int num_threads, std::int64_t most_rows = 0);
  PanelStream(const PanelStream&) = delete;
  PanelStream& operator=(const PanelStream&) = delete;
  ~PanelStream() { wait(); }

  /// Says that the points from place `first` on will be fetched, `rows` at a
  /// time to the last: the host then works ahead.
  void expect(Place first, std::int64_t rows);

  /// Puts the points at places first .. first + count - 1 into the buffer, once
  /// it is free. Returns when the host's part is done.
  void fetch(Place first, std::int64_t count, PanelBuffer& to);

  /// The same of the points with these numbers (ascending).
  void fetch_some(const std::int32_t* ids, std::int64_t count, PanelBuffer& to);

  /// After the last panel: throws RangeFailure if a row was beyond range.
  void check() { preparer_.check(); }

  /// Until nothing is on its way to a buffer. After a failure, too.
  void wait() { cudaStreamSynchronize(copies_.get()); }

  std::int64_t size() const { return points_.size(); }
  const PlacedPoints& points() const { return points_; }
  /// [num_points] the place of each point, -1: none. Device memory; null: its
  /// number is its place.
  const std::int32_t* places() const { return places_.data(); }

 private:
  Preparer::Range range(Place first, std::int64_t count) const;
  void finish(std::int64_t count, PanelBuffer& to);

  const PlacedPoints& points_;
  Place expected_ = {-1};           ///< what is to be fetched next, with
  std::int64_t expected_rows_ = 0;  ///< so many rows, or all that are left
  int device_ = 0;
  Stream copies_;
  DeviceBuffer<std::int32_t> places_;
  Preparer preparer_;
};

/// Calls use(panel) for all points from place `from_place` on, in two buffers:
/// a panel comes while what `use` put on `stream` for the one before is at
/// work. `use` returns whether to go on; so does this.
template <class Use>
bool for_panels(PanelStream& from, PanelBuffer (&buffers)[2],
                const Stream& stream, Use use, Place from_place = {0}) {
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
