#pragma once

// Candidates that wait for the exact step (exact/settle.cuh), and their memory.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/device/resources.cuh"
#include "cuda/device/transfer.cuh"
#include "cuda/exact/settle.cuh"

namespace fsknn {
namespace cuda {

/// The candidates of some points, one point after the other. The view holds for
/// as long as it lives.
class WaitingList {
 public:
  WaitingList() = default;
  /// Points of these panel places (ascending), point p with so many pairs from
  /// first[p] to first[p + 1]: room for them, but for their values. Waits for
  /// the stream.
  WaitingList(std::vector<std::int32_t> places,
              const std::vector<std::int64_t>& first, const Stream& stream)
      : places_(std::move(places)),
        d_places_(num_points()),
        first_(num_points() + 1),
        columns_(std::max<std::int64_t>(1, first.back())) {
    upload(d_places_, places_.data(), d_places_.size(), stream);
    upload(first_, first.data(), first_.size(), stream);
    stream.wait();
    for (std::size_t p = 0; p + 1 < first.size(); ++p)
      most_pairs_ = std::max(
          most_pairs_, static_cast<std::int32_t>(first[p + 1] - first[p]));
  }
  void hold_values() { values_ = DeviceBuffer<double>(columns_.size()); }
  DeviceBuffer<std::int32_t>& columns() { return columns_; }
  const std::vector<std::int32_t>& places() const { return places_; }

  WaitingPairs view() {
    WaitingPairs pairs;
    pairs.own_places = d_places_.data();
    pairs.first = first_.data();
    pairs.columns = columns_.data();
    pairs.values = values_.data();
    return pairs;
  }
  std::int64_t num_points() const {
    return static_cast<std::int64_t>(places_.size());
  }
  std::int64_t num_pairs() const { return columns_.size(); }
  std::int32_t most_pairs() const { return most_pairs_; }  ///< of a point
  /// How many of the points come by before those of this panel place.
  std::int64_t before(Place place) const {
    return std::lower_bound(places_.begin(), places_.end(), place.value) -
           places_.begin();
  }

 private:
  std::vector<std::int32_t> places_;
  DeviceBuffer<std::int32_t> d_places_;
  DeviceBuffer<std::int64_t> first_;
  DeviceBuffer<std::int32_t> columns_;
  DeviceBuffer<double> values_;
  std::int32_t most_pairs_ = 1;
};

}  // namespace cuda
}  // namespace fsknn
