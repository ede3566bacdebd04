#pragma once

// Prepared points on devices, from search to search of one set of points: what
// a search finds there it need not prepare again.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/weights.hpp"
#include "cuda/filter/pair_filter.cuh"
#include "cuda/search/filter_form.cuh"
#include "cuda/search/search.cuh"

namespace fsknn {
namespace cuda {

/// A search's columns on one device, and in the filter's form once that is
/// asked for.
class StoredPoints {
 public:
  StoredPoints(const Search& search, const Stream& stream);

  /// Whether another search would make the same.
  bool suits(const Search& search) const;
  /// Makes the filter's form, unless it is there. Waits for the stream if so.
  void hold_form(const Search& search, const Stream& stream);

  const DevicePoints& points() const { return points_; }
  PairFilter& filter() { return *filter_; }
  FilterForm& form() { return *form_; }
  double bytes() const;

 private:
  // What they were made of.
  const RowSource* const source_;
  const std::shared_ptr<const SampleWeights> weights_;
  const MetricEntry* const metric_;
  const PowerOfTwo scale_;
  const std::vector<std::int32_t> ids_;  ///< by place

  DevicePoints points_;
  NumberForm number_form_ = NumberForm::none;
  std::unique_ptr<PairFilter> filter_;
  std::unique_ptr<FilterForm> form_;
};

/// One for each device, at most. One search at a time; its devices' threads at
/// once.
class PointStore {
 public:
  PointStore() = default;
  PointStore(const PointStore&) = delete;
  PointStore& operator=(const PointStore&) = delete;
  ~PointStore() { clear(); }

  /// The search's columns on the current device: those of a search before,
  /// where they suit. They stay until the store goes, or holds others.
  StoredPoints& get(const Search& search, const Stream& stream);

  void clear() noexcept;
  double bytes_on(int device) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::unique_ptr<StoredPoints>> by_device_;
};

}  // namespace cuda
}  // namespace fsknn
