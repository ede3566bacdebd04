#pragma once

// Keeps prepared points on devices between searches of one set of points, so
// that they are prepared once.

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
#include "cuda/search/tile_tree.hpp"

namespace fsknn {
namespace cuda {

/// The points requested, and their preparation.
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

/// Returns the columns of a search for the nearest.
PointsToStore columns_of(const Search& search);

/// Points on one device, and in the filter's form once that is requested.
class StoredPoints {
 public:
  StoredPoints(const PointsToStore& asked, const Stream& stream);

  /// Returns whether they are the requested points.
  bool suits(const PointsToStore& asked) const;
  /// Makes the form of such a filter, or the form that replaces it if it does
  /// not suit. It is kept only if the previous request was the same: a filter
  /// that learnt for fewer neighbours, say, may have another form. A device
  /// that kept it would then disagree with one that learns now. undo: the final
  /// factor of distances. Waits for the stream if it makes a form.
  void hold_form(const RowsInForm& rows, PowerOfTwo undo, const Sought& sought,
                 const Stream& stream);

  /// Makes the same form from what the filter learns of these rows, which need
  /// not be points; only if PairFilter::may_learn_again(). The next hold_form()
  /// remakes its own. Waits for the stream.
  void learn_again(const PreparedRows& sample, std::int64_t count,
                   PowerOfTwo undo, const Stream& stream);
  /// Returns whether the form is the one that hold_form() made.
  bool holds_form() const { return asked_.form != NumberForm::none; }

  /// Sets the receiver of hold_form()'s reports; null: none.
  void tell(LearntForms* learnt) { learnt_ = learnt; }

  const DevicePoints& points() const { return points_; }
  /// Returns the tree whose order the form's slots have; null: random order.
  const TileTree* tree() const { return tree_.get(); }
  /// Returns the seconds that the tree, or its sample, took in the last
  /// hold_form().
  double seconds_tree() const { return seconds_tree_; }
  /// By slot of the form: the place of each point, -1: none.
  std::vector<std::int32_t> places() const;
  PairFilter& filter() { return *formed_.filter; }
  FilterForm& form() { return *formed_.form; }
  /// By slot, device memory: the place of each point, -1: none.
  const std::int32_t* slot_places() const { return slot_places_.data(); }
  double bytes() const;

 private:
  void make_form(const RowsInForm& rows, PowerOfTwo undo, const Sought& sought,
                 const Stream& stream);
  void make_tree(const Sought& sought, const Stream& stream);
  std::vector<std::int32_t> slots() const;

  // Their source and settings.
  const RowSource* const source_;
  const std::shared_ptr<const SampleWeights> weights_;
  const std::shared_ptr<const SampleCovariates> covariates_;
  const MetricEntry metric_;  ///< a request's own entry does not outlive it
  const PowerOfTwo scale_;
  const std::vector<std::int32_t> ids_;  ///< by place
  const int num_threads_;

  DevicePoints points_;
  DeviceBuffer<std::int32_t> slot_places_;
  // The request.
  RowsInForm asked_;
  Sought sought_;
  LearntForms* learnt_ = nullptr;
  FormedPoints formed_;
  std::unique_ptr<const TileTree> tree_;
  double seconds_tree_ = 0.0;
};

/// One entry for each device, at most. It serves one search at a time, whose
/// devices' threads may run concurrently.
class PointStore {
 public:
  /// held: for many searches.
  explicit PointStore(bool held = false) : held_(held) {}
  PointStore(const PointStore&) = delete;
  PointStore& operator=(const PointStore&) = delete;
  ~PointStore() { clear(); }

  bool held() const { return held_; }
  /// Returns the points of a source in their places, as for the previous search
  /// if that had the same. They stay until the store holds others.
  const PlacedPoints& placed(const RowSource& points,
                             const std::vector<std::int64_t>& skip,
                             bool shuffle);
  /// Returns the points on the current device: those of a previous search, if
  /// they suit. They stay until the store is destroyed, or holds others.
  StoredPoints& get(const PointsToStore& asked, const Stream& stream);

  void clear() noexcept;
  double bytes_on(int device) const;
  /// Returns the devices as they would be if they held nothing of this.
  std::vector<Device> as_if_free(std::vector<Device> devices) const;

 private:
  const bool held_;
  std::unique_ptr<const PlacedPoints> placed_;
  std::vector<std::int64_t> skip_;  ///< of placed_, and whether it is shuffled
  bool shuffled_ = false;
  mutable std::mutex mutex_;
  std::map<int, std::unique_ptr<StoredPoints>> by_device_;
};

}  // namespace cuda
}  // namespace fsknn
