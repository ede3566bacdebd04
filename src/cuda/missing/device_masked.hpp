#pragma once

// Holds points with missing values on a device, and the rows that filters read
// there.

#include <cstdint>
#include <vector>

#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/missing/masked_kernels.hpp"
#include "cuda/plan/number_forms.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {

/// The numbers of a search that the host chooses.
struct MaskedPlan {
  /// half: by products, until these keep too many pairs; single: by sums in
  /// float32.
  NumberForm form;
  std::int64_t depth, half_depth, capacity, first_columns, batch_rows;
  float error, square_error;  ///< correlations
  float shrink;               ///< differences
};

/// Points on the current device.
class DeviceMasked {
 public:
  DeviceMasked(const PlacedPoints& points, const MaskedRule& rule,
               const MaskedPlan& plan, int num_threads, const Stream& stream)
      : points_(points),
        plan_(plan),
        rows_(points.size() * points.padded),
        masks_(points.size() * words()),
        ids_(points.size()) {
    upload(ids_, points.order.id.data(), ids_.size(), stream);
    place_rows(rule, num_threads, stream);
  }

  /// Takes the units of differences, before filters' rows are made. `units`
  /// must outlive this.
  void take_units(const MaskedUnits& units, const Stream& stream) {
    units_ = &units;
    centre_ = DeviceBuffer<double>(points_.num_features);
    upload(centre_, units.centre.data(), centre_.size(), stream);
  }

  /// Computes the units from some of the rows.
  MaskedUnits units(const MaskedRule& rule, const Stream& stream) const {
    const std::int64_t n = points_.size(), step = masked_units_step(n);
    const std::int64_t count = (n + step - 1) / step;
    const std::size_t row =
        static_cast<std::size_t>(points_.padded) * sizeof(double);
    std::vector<double> some(static_cast<std::size_t>(count * points_.padded));
    CUDA_CHECK(cudaMemcpy2DAsync(some.data(), row, rows_.data(),
                                 row * static_cast<std::size_t>(step), row,
                                 static_cast<std::size_t>(count),
                                 cudaMemcpyDeviceToHost, stream.get()));
    stream.wait();
    return masked_units(some.data(), count, points_.padded,
                        points_.num_features, rule, kProductHeadroom);
  }

  /// Makes the rows of the filter by products.
  void make_halves(const Stream& stream) {
    halves_ = DeviceBuffer<__half>(points_.size() * plan_.half_depth);
    bounds_ = DeviceBuffer<float4>(points_.size());
    start_product_rows(
        {rows_.data(), points_.size(), points_.num_features, points_.padded,
         plan_.half_depth, centre(), by(), rounding_of_sums(points_.padded),
         halves_.data(), bounds_.data()},
        stream.get());
  }

  /// Makes the rows of the filters in float32.
  void make_floats(bool squared, const Stream& stream) {
    z_ = DeviceBuffer<float>(points_.size() * plan_.depth);
    if (units_ == nullptr) {
      start_masked_rows(rows_.data(), points_.size(), points_.num_features,
                        points_.padded, plan_.depth, z_.data(), stream.get());
      return;
    }
    errors_ = DeviceBuffer<float>(points_.size());
    start_difference_rows(
        {rows_.data(), points_.size(), points_.num_features, points_.padded,
         plan_.depth, centre(), by(), squared, z_.data(), errors_.data()},
        stream.get());
  }

  MaskedRows view() const {
    return {rows_.data(),   masks_.data(),  z_.data(),  errors_.data(),
            halves_.data(), bounds_.data(), ids_.data()};
  }

 private:
  std::int64_t words() const { return (points_.num_features + 63) / 64; }
  /// Sends the rows as all threads read them, and prepares them on the device.
  void place_rows(const MaskedRule& rule, int num_threads,
                  const Stream& stream) {
    const PointOrder& order = points_.order;
    DeviceBuffer<std::int32_t> places(
        static_cast<std::int64_t>(order.place.size()));
    upload(places, order.place.data(), places.size(), stream);
    PrepareTarget target;
    target.device = current_device();
    target.stream = stream.get();
    target.rows = rows_.data();
    target.places = places.data();
    RowRecipe as_read;
    as_read.form = RowForm::ready;
    const RankedKnown ranked(*points_.source);
    const RowSource& source = rule.form() == RowForm::ranked
                                  ? static_cast<const RowSource&>(ranked)
                                  : *points_.source;
    Preparer preparer(source, as_read, num_threads, {target.device});
    preparer.prepare(PointId{0}, source.num_points(), {target});
    start_placed_rows(
        {rows_.data(), points_.size(), points_.num_features, points_.padded,
         words(), rule.form() != RowForm::raw, rule.scale(), masks_.data()},
        stream.get());
    stream.wait();  // `places` is freed
  }
  const double* centre() const {
    return units_ == nullptr ? nullptr : centre_.data();
  }
  PowerOfTwo by() const {
    return units_ == nullptr ? PowerOfTwo{1.0, 1.0} : units_->by;
  }
  const PlacedPoints& points_;
  const MaskedPlan& plan_;
  const MaskedUnits* units_ = nullptr;  ///< null: correlations
  DeviceBuffer<double> rows_;
  DeviceBuffer<std::uint64_t> masks_;
  DeviceBuffer<float> z_, errors_;
  DeviceBuffer<__half> halves_;
  DeviceBuffer<float4> bounds_;
  DeviceBuffer<double> centre_;
  DeviceBuffer<std::int32_t> ids_;
};

}  // namespace cuda
}  // namespace fsknn
