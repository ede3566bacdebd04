#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/rows/subset.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/spares.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/prepare/held_rows.hpp"
#include "cuda/search/engine.hpp"

namespace fsknn {
namespace cuda {

// Rows stay on the devices as they were read if they take at most this share of
// the usable memory. Prepared points need memory beside them.
static constexpr double kRawShare = 1.0 / 3;

class HeldPoints::Impl {
 public:
  Impl(const Request& asked, const RowSource& points)
      : devices_(asked.devices), source_(points) {}

  void find_neighbours(const Request& request, const RowSource* queries,
                       const Neighbours& out, Progress* progress,
                       Stats* stats) {
    const Request ours = on_our_devices(request);
    find_with_store(ours, points(), queries, out, progress, stats, store_);
  }

  void find_within(const Request& request, const Within& within,
                   const RowSource* queries, WithinAnswer& answer,
                   Progress* progress, Stats* stats) {
    const Request ours = on_our_devices(request);
    find_within_with_store(ours, within, points(), queries, answer, progress,
                           stats, store_);
  }

  void choose_features(const std::vector<std::int32_t>& numbers) {
    if (numbers == features_) return;
    if (!numbers.empty()) FeatureSubset(source_, numbers);  // throws
    // Prepared points identify their source by its address.
    store_.clear();
    some_.reset();
    features_ = numbers;
  }

  std::vector<BytesOn> bytes() const {
    std::vector<BytesOn> all;
    for (const Device& gpu : devices()) {
      double bytes = store_.bytes_on(gpu.cuda_id);
      if (rows_ != nullptr && rows_->on(gpu.cuda_id) != nullptr)
        bytes += rows_->bytes();
      if (bytes > 0) all.push_back({row_of_device(gpu.cuda_id), bytes});
    }
    return all;
  }

 private:
  /// To be called after on_our_devices().
  const RowSource& points() {
    const RowSource& whole = rows_ != nullptr ? *rows_ : source_;
    if (features_.empty()) return whole;
    if (some_ == nullptr)
      some_ = std::make_unique<FeatureSubset>(whole, features_);
    return *some_;
  }

  Request on_our_devices(const Request& request) {
    if (request.na_pairwise)
      throw std::logic_error("points that lack values are not held");
    Request ours = request;
    ours.devices = devices_;
    hold(ours);
    if (ours.max_device_memory > 0 && rows_ != nullptr)
      ours.max_device_memory =
          std::max(1.0, ours.max_device_memory - rows_->bytes());
    return ours;
  }

  /// Sends the rows to all devices at the first search, if there is room.
  void hold(const Request& request) {
    if (asked_) return;
    asked_ = true;
    const UsedDevices gpus(devices_);
    const double usable =
        facts_of(gpus.all(), request.max_device_memory).bytes_usable();
    const double bytes =
        static_cast<double>(source_.num_points()) *
        static_cast<double>(padded_features(source_.num_features())) * 8;
    if (bytes > kRawShare * usable) return;
    std::vector<int> ids;
    for (const Device& gpu : gpus.all()) ids.push_back(gpu.cuda_id);
    rows_ = std::make_unique<HeldRows>(source_, ids, request.num_threads);
  }

  const KeepingSpares keeping_;
  const std::vector<int> devices_;
  const RowSource& source_;
  bool asked_ = false;
  std::unique_ptr<HeldRows> rows_;  ///< null: there is no room
  std::vector<std::int32_t> features_;
  std::unique_ptr<FeatureSubset> some_;
  PointStore store_{true};
};

HeldPoints::HeldPoints(const Request& asked, const RowSource& points)
    : impl_(std::make_unique<Impl>(asked, points)) {}

HeldPoints::~HeldPoints() = default;

void HeldPoints::choose_features(const std::vector<std::int32_t>& numbers) {
  impl_->choose_features(numbers);
}

std::vector<HeldPoints::BytesOn> HeldPoints::bytes() const {
  return impl_->bytes();
}

void HeldPoints::find_neighbours(const Request& request,
                                 const RowSource* queries,
                                 const Neighbours& out, Progress* progress,
                                 Stats* stats) {
  impl_->find_neighbours(request, queries, out, progress, stats);
}

void HeldPoints::find_within(const Request& request, const Within& within,
                             const RowSource* queries, WithinAnswer& answer,
                             Progress* progress, Stats* stats) {
  impl_->find_within(request, within, queries, answer, progress, stats);
}

}  // namespace cuda
}  // namespace fsknn
