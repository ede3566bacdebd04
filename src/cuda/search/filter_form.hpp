#pragma once

// Slots in a filter's form, in memory of their own.

#include <cstdint>

#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

/// Room for some slots on the current device.
class FilterForm {
 public:
  FilterForm(const PairFilter& filter, std::int64_t num_slots)
      : num_slots_(num_slots),
        rows_(num_slots * filter.row_bytes()),
        values_(num_slots * filter.floats_a_slot()) {}

  /// Before rows are made: padding's are zeros.
  void clear(const Stream& stream) {
    clear_from(rows_, 0, stream);
    if (values_.size() > 0) clear_from(values_, 0, stream);
  }
  double bytes() const {
    return static_cast<double>(rows_.size()) +
           static_cast<double>(values_.size()) * 4;
  }
  FilterRows rows() { return first(num_slots_); }
  /// The first so many slots as if there were no others.
  FilterRows first(std::int64_t num_slots) {
    return {rows_.data(), values_.data(), num_slots};
  }

 private:
  const std::int64_t num_slots_;
  DeviceBuffer<unsigned char> rows_;
  DeviceBuffer<float> values_;
};

}  // namespace cuda
}  // namespace fsknn
