#pragma once

// Rows that a device computes by itself (core/rows/made_rows.hpp) from a small
// part of the source, which is sent there once. Each new kind of source needs
// one more maker.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/rows/made_rows.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/prepare/row_kernels.hpp"

namespace fsknn {
namespace cuda {

/// Serves one source, on the device that was current at its construction; it
/// holds bytes_made_from() there.
class RowMaker {
 public:
  RowMaker() = default;
  RowMaker(const RowMaker&) = delete;
  RowMaker& operator=(const RowMaker&) = delete;
  virtual ~RowMaker() = default;
  /// Computes points `ids` (device, [to.count]; null: first, first + 1, ...).
  virtual void start(const std::int32_t* ids, std::int64_t first,
                     const PanelRows& to, cudaStream_t stream) const = 0;
};

/// Waits for the stream. Throws std::logic_error for a source without a maker.
std::unique_ptr<RowMaker> make_row_maker(const MadeFrom& from,
                                         std::int64_t num_points,
                                         const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
