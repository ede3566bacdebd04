#pragma once

// Lists on their way from a device to the answer, some ranks at a time.

#include <cstdint>

#include "core/request.hpp"
#include "cuda/emit.cuh"
#include "cuda/resources.cuh"

namespace fsknn {
namespace cuda {

class AnswerWriter {
 public:
  /// For lists of at most most_rows rows at a time.
  AnswerWriter(const Neighbours& out, std::int64_t most_rows, std::int64_t k);

  /// Writes the lists as the rows ids[0 .. num_rows - 1] of the answer. `from`:
  /// for correlations, where they are asked for; its last member is not read.
  /// Waits for the stream. Throws RangeFailure where a list is not full.
  void write(const Lists& lists, std::int64_t num_rows, const std::int32_t* ids,
             CorrelationOf from, const Stream& stream);

  double seconds() const { return seconds_; }

 private:
  void copy_out(const Slice& slice, const std::int32_t* ids);

  const Neighbours& out_;
  // A slice of some ranks of the lists, on the device and on the host.
  std::int64_t slice_ranks_;
  DeviceBuffer<double> slice_distance_, slice_correlation_;
  DeviceBuffer<std::int32_t> slice_index_;
  PinnedBuffer<double> h_distance_, h_correlation_;
  PinnedBuffer<std::int32_t> h_index_;
  double seconds_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
