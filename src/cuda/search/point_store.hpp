#pragma once

// Prepared points on devices, from search to search of one set of points: what
// a search finds there it need not prepare again.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/contract/covariates.hpp"
#include "core/contract/weights.hpp"
#include "cuda/backend.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// Which points are asked for, and how they are prepared.
struct PointsToStore {
  const PlacedPoints& points;
  const MetricEntry* metric;
  std::shared_ptr<const SampleWeights> weights;
  std::shared_ptr<const SampleCovariates> covariates;
  RowRecipe prepare;
  std::int64_t num_places;  ///< with padding, at least
  int num_threads;
  LearntForms* learnt = nullptr;  ///< see Search

  double bytes() const;
};

/// The columns of a search for the nearest.
PointsToStore columns_of(const Search& search);

/// Points on one device, and in the filter's form once that is asked for.
class StoredPoints {
 public:
  StoredPoints(const PointsToStore& asked, const Stream& stream);

  /// Whether they are what is asked for.
  bool suits(const PointsToStore& asked) const;
  /// Makes the form of such a filter, or the one that takes its place where it
  /// does not suit, unless it was made for just that before: what is learnt for
  /// fewer neighbours, say, may be another form, and a device that has it from
  /// then must not meet one that learns now. undo: what distances are
  /// multiplied by at last. Waits for the stream if so.
  void hold_form(const RowsInForm& rows, PowerOfTwo undo, const Sought& sought,
                 const Stream& stream);

  /// The same filter and form, by what it learns of these rows, which need not
  /// be points; where PairFilter::may_learn_again(). hold_form() makes its own
  /// anew after that. Waits for the stream.
  void learn_again(const PreparedRows& sample, std::int64_t count,
                   PowerOfTwo undo, const Stream& stream);
  /// Whether the form is what hold_form() made.
  bool holds_form() const { return asked_.form != NumberForm::none; }

  /// Whom hold_form() tells from here on; null: nobody.
  void tell(LearntForms* learnt) { learnt_ = learnt; }

  const DevicePoints& points() const { return points_; }
  PairFilter& filter() { return *formed_.filter; }
  FilterForm& form() { return *formed_.form; }
  double bytes() const;

 private:
  void make_form(const RowsInForm& rows, PowerOfTwo undo, const Sought& sought,
                 const Stream& stream);
  std::vector<std::int32_t> slots() const;

  // What they were made of.
  const RowSource* const source_;
  const std::shared_ptr<const SampleWeights> weights_;
  const std::shared_ptr<const SampleCovariates> covariates_;
  const MetricEntry* const metric_;
  const PowerOfTwo scale_;
  const std::vector<std::int32_t> ids_;  ///< by place

  DevicePoints points_;
  // Asked for.
  RowsInForm asked_;
  Sought sought_;
  LearntForms* learnt_ = nullptr;
  FormedPoints formed_;
};

/// One for each device, at most. One search at a time; its devices' threads at
/// once.
class PointStore {
 public:
  PointStore() = default;
  PointStore(const PointStore&) = delete;
  PointStore& operator=(const PointStore&) = delete;
  ~PointStore() { clear(); }

  /// The points on the current device: those of a search before, where they
  /// suit. They stay until the store goes, or holds others.
  StoredPoints& get(const PointsToStore& asked, const Stream& stream);

  void clear() noexcept;
  double bytes_on(int device) const;
  /// The devices as they would be if they held nothing of this.
  std::vector<Device> as_if_free(std::vector<Device> devices) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::unique_ptr<StoredPoints>> by_device_;
};

}  // namespace cuda
}  // namespace fsknn
