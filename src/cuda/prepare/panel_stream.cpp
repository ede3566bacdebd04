#include "cuda/prepare/panel_stream.hpp"

#include <algorithm>
#include <vector>

#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {
namespace {

bool any_left_out(const PlacedPoints& points) {
  return points.size() < points.source->num_points();
}

}  // namespace

PanelBuffer::PanelBuffer(std::int64_t most_rows, std::int64_t padded)
    : rows_(whole_tiles(most_rows) * padded),
      sums_(whole_tiles(most_rows)),
      ids_(most_rows) {}

PanelStream::PanelStream(const PlacedPoints& points, const RowRecipe& recipe,
                         int num_threads, std::int64_t most_rows)
    : points_(points),
      device_(current_device()),
      places_(any_left_out(points)
                  ? static_cast<std::int64_t>(points.order.place.size())
                  : 0),
      preparer_(*points.source, recipe, num_threads, {device_}, most_rows) {
  if (places_.size() > 0)
    upload(places_, points.order.place.data(), places_.size(), copies_);
}

Preparer::Range PanelStream::range(Place first, std::int64_t count) const {
  const std::int32_t* const ids = points_.order.id.data() + first.value;
  return {PointId{ids[0]}, ids[count - 1] - ids[0] + 1};
}

void PanelStream::expect(Place first, std::int64_t rows) {
  std::vector<Preparer::Range> ranges;
  for (std::int64_t at = first.value; at < size(); at += rows)
    ranges.push_back(range(Place{at}, std::min(rows, size() - at)));
  preparer_.begin(ranges);
  expected_ = first;
  expected_rows_ = rows;
}

void PanelStream::fetch(Place first, std::int64_t count, PanelBuffer& to) {
  to.free_.hold(copies_);
  to.panel_.first = first;
  upload(to.ids_, points_.own_ids() + first.value, count, copies_);
  PrepareTarget target;
  target.device = device_;
  target.stream = copies_.get();
  target.rows = to.rows_.data();
  target.sums = to.sums_.data();
  target.places = places_.data();
  if (places_.size() > 0) {
    target.first_place = first;
    target.num_places = count;
  }
  const Preparer::Range points = range(first, count);
  const std::int64_t left = size() - first.value;
  if (first == expected_ && count == std::min(expected_rows_, left)) {
    preparer_.next({target});
    expected_ = {count < left ? first.value + count : -1};
  } else {
    preparer_.prepare(points.first, points.count, {target});
    expected_ = {-1};
  }
  finish(count, to);
}

void PanelStream::fetch_some(const std::int32_t* ids, std::int64_t count,
                             PanelBuffer& to) {
  to.free_.hold(copies_);
  to.panel_.first = {0};
  upload(to.ids_, ids, count, copies_);
  PrepareTarget target;
  target.device = device_;
  target.stream = copies_.get();
  target.rows = to.rows_.data();
  target.sums = to.sums_.data();
  preparer_.prepare_some(ids, count, {target});
  expected_ = {-1};
  finish(count, to);
}

void PanelStream::finish(std::int64_t count, PanelBuffer& to) {
  // Kernels read whole tiles.
  const std::int64_t padded = points_.padded;
  const std::int64_t beyond = whole_tiles(count) - count;
  CUDA_CHECK(cudaMemsetAsync(
      to.rows_.data() + count * padded, 0,
      static_cast<std::size_t>(beyond * padded) * sizeof(double),
      copies_.get()));
  CUDA_CHECK(cudaMemsetAsync(to.sums_.data() + count, 0,
                             static_cast<std::size_t>(beyond) * sizeof(double),
                             copies_.get()));
  to.panel_.count = count;
  to.panel_.rows = to.rows_.data();
  to.panel_.sums = to.sums_.data();
  to.panel_.ids = to.ids_.data();
  to.ready_.record(copies_);
}

}  // namespace cuda
}  // namespace fsknn
