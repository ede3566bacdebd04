#include "cuda/search/point_store.cuh"

#include "cuda/device/check.cuh"
#include "cuda/device/transfer.cuh"
#include "cuda/search/rounds.cuh"

namespace fsknn {
namespace cuda {
namespace {

int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

}  // namespace

StoredPoints::StoredPoints(const Search& search, const Stream& stream)
    : source_(search.columns.source),
      weights_(search.request.weights),
      metric_(search.request.metric),
      scale_(search.prepare.scale),
      ids_(search.columns.order.id),
      points_(search.columns, search, search.plan.padded_points, stream) {}

bool StoredPoints::suits(const Search& search) const {
  return source_ == search.columns.source &&
         weights_ == search.request.weights &&
         metric_ == search.request.metric &&
         scale_.first == search.prepare.scale.first &&
         scale_.second == search.prepare.scale.second &&
         points_.sums.size() == search.plan.padded_points &&
         (filter_ == nullptr || number_form_ == search.plan.shape.rows.form) &&
         ids_ == search.columns.order.id;
}

void StoredPoints::hold_form(const Search& search, const Stream& stream) {
  if (form_ != nullptr) return;
  const FilterBlocks blocks(search.columns.size());
  auto filter =
      make_pair_filter(*search.request.metric, search.plan.shape.rows);
  auto form = std::make_unique<FilterForm>(*filter, blocks.num_slots());
  form->clear(stream);
  const std::vector<std::int32_t> slots =
      slots_of(blocks.places(), search.columns.size());
  DeviceBuffer<std::int32_t> d_slots(search.columns.size());
  upload(d_slots, slots.data(), d_slots.size(), stream);
  // Points are shuffled: the first of them are a sample.
  filter->learn(points_.prepared(), search.columns.size(), search.undo,
                stream.get());
  filter->start_rows(points_.prepared(), d_slots.size(), d_slots.data(),
                     form->rows(), stream.get());
  stream.wait();
  number_form_ = search.plan.shape.rows.form;
  filter_ = std::move(filter);
  form_ = std::move(form);
}

double StoredPoints::bytes() const {
  const double points = static_cast<double>(points_.rows.size()) * 8 +
                        static_cast<double>(points_.sums.size()) * 12 +
                        static_cast<double>(points_.places.size()) * 4;
  return points + (form_ == nullptr ? 0.0 : form_->bytes());
}

StoredPoints& PointStore::get(const Search& search, const Stream& stream) {
  std::unique_ptr<StoredPoints>* own = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    own = &by_device_[current_device()];
  }
  // Another thread has another device's.
  if (*own != nullptr && !(*own)->suits(search)) own->reset();
  if (*own == nullptr) *own = std::make_unique<StoredPoints>(search, stream);
  return **own;
}

void PointStore::clear() noexcept {
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

}  // namespace cuda
}  // namespace fsknn
