#pragma once

// Points in a filter's form, in memory of their own.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

/// Memory for some slots on the current device.
class FilterForm {
 public:
  FilterForm(const PairFilter& filter, std::int64_t num_slots)
      : num_slots_(num_slots),
        rows_bytes_(num_slots * filter.row_bytes()),
        memory_(rows_bytes_ + num_slots * filter.floats_a_slot() * 4) {}

  /// Sets padding to zeros, before rows are made.
  void clear(const Stream& stream) { clear_from(memory_, 0, stream); }
  double bytes() const { return static_cast<double>(memory_.size()); }
  /// Makes the rows of points as the filter has learnt. slot_of: by place.
  /// Waits for the stream.
  void make_rows(PairFilter& filter, const PreparedRows& points,
                 const std::vector<std::int32_t>& slot_of,
                 const Stream& stream) {
    DeviceBuffer<std::int32_t> slots(static_cast<std::int64_t>(slot_of.size()));
    upload(slots, slot_of.data(), slots.size(), stream);
    filter.start_rows(points, slots.size(), slots.data(), rows(), stream.get());
    stream.wait();
  }
  FilterRows rows() { return first(num_slots_); }
  /// Returns the first slots as if there were no others.
  FilterRows first(std::int64_t num_slots) {
    unsigned char* const rows = memory_.data();
    return {rows, reinterpret_cast<float*>(rows + rows_bytes_), num_slots};
  }

 private:
  const std::int64_t num_slots_, rows_bytes_;
  /// The rows, then the values of slots. Slots come in whole blocks, so that
  /// the values are aligned.
  DeviceBuffer<unsigned char> memory_;
};

/// Points that a device holds in double, in the first form that suits them:
/// this one or those that may replace it. A sample decides first, then all rows
/// once they are made.
struct FormedPoints {
  std::unique_ptr<PairFilter> filter;
  std::unique_ptr<FilterForm> form;

  /// slot_of: by place, of num_slots. Waits for the stream.
  static FormedPoints make(const MetricEntry& metric, RowsInForm rows,
                           const FilterSample& sample,
                           const PreparedRows& points,
                           const std::vector<std::int32_t>& slot_of,
                           std::int64_t num_slots, const Stream& stream) {
    for (;;) {
      FormedPoints made;
      made.filter = learnt_filter(metric, rows, sample, stream);
      made.form = std::make_unique<FilterForm>(*made.filter, num_slots);
      made.form->clear(stream);
      made.form->make_rows(*made.filter, points, slot_of, stream);
      const bool suits = made.filter->suits(stream);
      stream.wait();
      if (suits) return made;
      rows = made.filter->rows().otherwise();
    }
  }
};

}  // namespace cuda
}  // namespace fsknn
