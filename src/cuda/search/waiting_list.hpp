#pragma once

// Candidates that wait for the exact step (exact/rerank.hpp), and their memory.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/exact/rerank.hpp"

namespace fsknn {
namespace cuda {

/// The candidates of some points, point by point, in the memory of the device
/// or of the host. The device reads and writes the host's too, and copies those
/// of some points while it computes many of theirs. Views are valid as long as
/// it lives.
class WaitingList {
 public:
  enum class Where { device, host };

  WaitingList() = default;
  /// Points at these panel places (ascending), where point p has the pairs
  /// first[p] to first[p + 1]. It allocates memory for them, without their
  /// values. Waits for the stream.
  WaitingList(std::vector<std::int32_t> places, std::vector<std::int64_t> first,
              Where where, const Stream& stream)
      : where_(where),
        places_(std::move(places)),
        first_(std::move(first)),
        d_places_(num_points()),
        d_first_(num_points() + 1) {
    const std::int64_t room = std::max<std::int64_t>(1, num_pairs());
    if (on_host())
      host_columns_ = PinnedBuffer<std::int32_t>(room);
    else
      columns_ = DeviceBuffer<std::int32_t>(room);
    upload(d_places_, places_.data(), d_places_.size(), stream);
    upload(d_first_, first_.data(), d_first_.size(), stream);
    stream.wait();
    for (std::size_t p = 0; p + 1 < first_.size(); ++p)
      most_pairs_ = std::max(
          most_pairs_, static_cast<std::int32_t>(first_[p + 1] - first_[p]));
  }
  void hold_values() {
    const std::int64_t room = std::max<std::int64_t>(1, num_pairs());
    if (on_host())
      host_values_ = PinnedBuffer<double>(room);
    else
      values_ = DeviceBuffer<double>(room);
  }
  bool on_host() const { return where_ == Where::host; }

  /// Returns where the columns must be written, in either memory.
  std::int32_t* columns() {
    return on_host() ? host_columns_.data() : columns_.data();
  }
  const std::vector<std::int32_t>& places() const { return places_; }

  WaitingPairs view() {
    return view_of(columns(), on_host() ? host_values_.data() : values_.data());
  }

  /// Allocates room on the device for this many pairs of the host's.
  void hold_room(std::int64_t pairs) {
    if (!on_host()) return;
    columns_ = DeviceBuffer<std::int32_t>(std::max<std::int64_t>(1, pairs));
    values_ = DeviceBuffer<double>(std::max<std::int64_t>(1, pairs));
  }
  /// Copies points first .. end - 1 there, as they are when the stream reaches
  /// this.
  void hold(std::int64_t first, std::int64_t end, const Stream& stream) {
    if (!on_host()) return;
    held_from_ = first_[static_cast<std::size_t>(first)];
    const std::int64_t count = pairs_of(first, end);
    if (count == 0) return;
    upload(columns_, host_columns_.data() + held_from_, count, stream);
    upload(values_, host_values_.data() + held_from_, count, stream);
  }
  /// Returns the copy of those points; view() does not show the values computed
  /// there.
  WaitingPairs held() {
    if (!on_host()) return view();
    return view_of(columns_.data() - held_from_, values_.data() - held_from_);
  }

  std::int64_t num_points() const {
    return static_cast<std::int64_t>(places_.size());
  }
  std::int64_t num_pairs() const { return first_.empty() ? 0 : first_.back(); }
  std::int64_t pairs_of(std::int64_t first, std::int64_t end) const {
    return first_.empty() ? 0
                          : first_[static_cast<std::size_t>(end)] -
                                first_[static_cast<std::size_t>(first)];
  }
  /// Returns the bytes of device memory, without the temporary copies.
  double bytes_of_pairs() const {
    return on_host() ? 0.0 : 12.0 * static_cast<double>(num_pairs());
  }
  std::int32_t most_pairs() const { return most_pairs_; }  ///< of any point
  /// Returns the number of points that precede this panel place.
  std::int64_t before(Place place) const {
    return std::lower_bound(places_.begin(), places_.end(), place.value) -
           places_.begin();
  }

 private:
  WaitingPairs view_of(std::int32_t* columns, double* values) {
    WaitingPairs pairs;
    pairs.own_places = d_places_.data();
    pairs.first = d_first_.data();
    pairs.columns = columns;
    pairs.values = values;
    return pairs;
  }

  Where where_ = Where::device;
  std::vector<std::int32_t> places_;
  std::vector<std::int64_t> first_;
  DeviceBuffer<std::int32_t> d_places_;
  DeviceBuffer<std::int64_t> d_first_;
  DeviceBuffer<std::int32_t> columns_;
  DeviceBuffer<double> values_;
  PinnedBuffer<std::int32_t> host_columns_;
  PinnedBuffer<double> host_values_;
  std::int64_t held_from_ = 0;
  std::int32_t most_pairs_ = 1;
};

}  // namespace cuda
}  // namespace fsknn
