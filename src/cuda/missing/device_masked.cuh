#pragma once

// Points with missing values on a device, and the rows that filters read there.

#include <cstdint>

#include "core/masked_points.hpp"
#include "core/prepared.hpp"
#include "cuda/device/resources.cuh"
#include "cuda/device/transfer.cuh"
#include "cuda/missing/masked_kernels.cuh"

namespace fsknn {
namespace cuda {

/// The numbers of a search that the host chooses.
struct MaskedPlan {
  bool by_products;  ///< of halves, until these keep too many
  std::int64_t depth, half_depth, capacity, first_columns, batch_rows;
  float error, square_error;  ///< correlations
  float shrink;               ///< differences
};

/// Points on the current device.
class DeviceMasked {
 public:
  /// units: null for correlations.
  DeviceMasked(const MaskedPoints& points, const MaskedPlan& plan,
               const MaskedUnits* units, const Stream& stream)
      : points_(points),
        plan_(plan),
        units_(units),
        rows_(points.rows.size()),
        masks_(points.masks.size()),
        ids_(points.size()) {
    upload(rows_, points.rows.data(), rows_.size(), stream);
    upload(masks_, points.masks.data(), masks_.size(), stream);
    upload(ids_, points.order.id.data(), ids_.size(), stream);
    if (units == nullptr) return;
    centre_ = DeviceBuffer<double>(points.num_features);
    upload(centre_, units->centre.data(), centre_.size(), stream);
  }

  /// The rows of the filter by products.
  void make_halves(const Stream& stream) {
    halves_ = DeviceBuffer<__half>(points_.size() * plan_.half_depth);
    bounds_ = DeviceBuffer<float4>(points_.size());
    start_product_rows(
        {rows_.data(), points_.size(), points_.num_features, points_.padded,
         plan_.half_depth, centre(), by(), rounding_of_sums(points_.padded),
         halves_.data(), bounds_.data()},
        stream.get());
  }

  /// Those of the filters in float32.
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
  const double* centre() const {
    return units_ == nullptr ? nullptr : centre_.data();
  }
  PowerOfTwo by() const {
    return units_ == nullptr ? PowerOfTwo{1.0, 1.0} : units_->by;
  }
  const MaskedPoints& points_;
  const MaskedPlan& plan_;
  const MaskedUnits* const units_;
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
