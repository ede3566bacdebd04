#include "cuda/search/point_store.hpp"

#include "core/base/pieces.hpp"

#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/search/rounds.hpp"

namespace fsknn {
namespace cuda {
PointsToStore columns_of(const Search& search) {
  return {search.columns,         search.request.metric,
          search.request.weights, search.request.covariates,
          search.prepare,         search.plan.padded_points,
          threads_of(search),     search.learnt};
}

double PointsToStore::bytes() const {
  return static_cast<double>(num_places) *
             (static_cast<double>(points.padded) * 8 + 12) +
         static_cast<double>(points.source->num_points()) * 4;
}

StoredPoints::StoredPoints(const PointsToStore& asked, const Stream& stream)
    : source_(asked.points.source),
      weights_(asked.weights),
      covariates_(asked.covariates),
      metric_(*asked.metric),
      scale_(asked.prepare.scale),
      ids_(asked.points.order.id),
      num_threads_(asked.num_threads),
      points_(asked.points, asked.prepare, asked.num_threads, asked.num_places,
              stream) {}

const PlacedPoints& PointStore::placed(const RowSource& points,
                                       const std::vector<std::int64_t>& skip,
                                       bool shuffle) {
  if (placed_ == nullptr || placed_->source != &points || skip_ != skip ||
      shuffled_ != shuffle) {
    placed_.reset();
    skip_ = skip;
    shuffled_ = shuffle;
    placed_ = std::make_unique<const PlacedPoints>(points, skip, shuffle);
  }
  return *placed_;
}

bool StoredPoints::suits(const PointsToStore& asked) const {
  return source_ == asked.points.source && weights_ == asked.weights &&
         covariates_ == asked.covariates &&
         is_same_metric(metric_, *asked.metric) &&
         scale_.first == asked.prepare.scale.first &&
         scale_.second == asked.prepare.scale.second &&
         points_.sums.size() >= asked.num_places &&
         ids_ == asked.points.order.id;
}

void StoredPoints::hold_form(const RowsInForm& rows, PowerOfTwo undo,
                             const Sought& sought, const Stream& stream) {
  seconds_tree_ = 0.0;
  // Without a tree, also a form that a sample did not put in a tree will do.
  Sought without = sought_;
  if (sought.tree == TreeUse::never && tree_ == nullptr)
    without.tree = TreeUse::never;
  if (formed_.form == nullptr || !(asked_ == rows) || !(without == sought))
    make_form(rows, undo, sought, stream);
  if (learnt_ != nullptr)
    learnt_->tell(
        rows, LearntForms::Stage::made,
        learnt_form(*formed_.filter, true, form().rows().rows,
                    form().rows().num_slots * formed_.filter->row_bytes(),
                    stream));
}

void StoredPoints::make_form(const RowsInForm& rows, PowerOfTwo undo,
                             const Sought& sought, const Stream& stream) {
  // If anything below fails, the next request makes the form anew.
  asked_ = RowsInForm();
  formed_ = FormedPoints();
  make_tree(sought, stream);
  const FilterBlocks blocks(static_cast<std::int64_t>(ids_.size()));
  // Points are shuffled, so the first of them are a sample.
  const FilterSample sample = {points_.prepared(), blocks.num_points, undo,
                               sought};
  formed_ = FormedPoints::make(metric_, rows, sample, points_.prepared(),
                               slots(), blocks.num_slots(), stream);
  if (tree_ != nullptr && formed_.filter->rows().form != NumberForm::half) {
    // Only halves are compared by lists of blocks.
    tree_.reset();
    formed_.form->clear(stream);
    formed_.form->make_rows(*formed_.filter, points_.prepared(), slots(),
                            stream);
  }
  const std::vector<std::int32_t> own_places = places();
  slot_places_ = DeviceBuffer<std::int32_t>(blocks.num_slots());
  upload(slot_places_, own_places.data(), slot_places_.size(), stream);
  stream.wait();
  asked_ = rows;
  sought_ = sought;
}

void StoredPoints::make_tree(const Sought& sought, const Stream& stream) {
  tree_.reset();
  if (sought.tree == TreeUse::never) return;
  const Clock::time_point start = Clock::now();
  const std::int64_t n = static_cast<std::int64_t>(ids_.size());
  if (sought.tree == TreeUse::always ||
      share_by_tree(points_.prepared(), n, sought.k, stream) <= kMostLeftByTree)
    tree_ = std::make_unique<const TileTree>(points_.prepared(), n, stream);
  seconds_tree_ = seconds_since(start);
}

std::vector<std::int32_t> StoredPoints::places() const {
  return tree_ != nullptr
             ? tree_->places()
             : FilterBlocks(static_cast<std::int64_t>(ids_.size())).places();
}

/// By place.
std::vector<std::int32_t> StoredPoints::slots() const {
  return slots_of(places(), static_cast<std::int64_t>(ids_.size()),
                  num_threads_);
}

void StoredPoints::learn_again(const PreparedRows& sample, std::int64_t count,
                               PowerOfTwo undo, const Stream& stream) {
  asked_ = RowsInForm();
  formed_.filter->learn(sample, count, undo, sought_, stream);
  formed_.form->make_rows(*formed_.filter, points_.prepared(), slots(), stream);
}

double StoredPoints::bytes() const {
  const double points = static_cast<double>(slot_places_.size()) * 4 +
                        static_cast<double>(points_.rows.size()) * 8 +
                        static_cast<double>(points_.sums.size()) * 12 +
                        static_cast<double>(points_.places.size()) * 4;
  return points + (formed_.form == nullptr ? 0.0 : formed_.form->bytes()) +
         (tree_ == nullptr ? 0.0 : tree_->bytes());
}

StoredPoints& PointStore::get(const PointsToStore& asked,
                              const Stream& stream) {
  std::unique_ptr<StoredPoints>* own = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    own = &by_device_[current_device()];
  }
  // Another thread uses another device's entry.
  if (*own != nullptr && !(*own)->suits(asked)) own->reset();
  if (*own == nullptr) *own = std::make_unique<StoredPoints>(asked, stream);
  (*own)->tell(asked.learnt);
  return **own;
}

void PointStore::clear() noexcept {
  placed_.reset();
  for (auto& stored : by_device_) {
    if (stored.second == nullptr) continue;
    const GivingBackOn device(stored.first);
    stored.second.reset();
  }
}

double PointStore::bytes_on(int device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_device_.find(device);
  return found == by_device_.end() || found->second == nullptr
             ? 0.0
             : found->second->bytes();
}

std::vector<Device> PointStore::as_if_free(std::vector<Device> devices) const {
  for (Device& device : devices) device.bytes_free += bytes_on(device.cuda_id);
  return devices;
}

}  // namespace cuda
}  // namespace fsknn
