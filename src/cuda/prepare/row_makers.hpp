#pragma once

// Rows that a device makes by itself (core/rows/made_rows.hpp): a source's
// small part goes there once. A further source has one maker more.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/rows/made_rows.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/prepare/row_kernels.hpp"

namespace fsknn {
namespace cuda {

/// Of one source, on the device that was current when it was made; it holds
/// bytes_made_from() there.
class RowMaker {
 public:
  RowMaker() = default;
  RowMaker(const RowMaker&) = delete;
  RowMaker& operator=(const RowMaker&) = delete;
  virtual ~RowMaker() = default;
  /// Makes points `ids` (device, [to.count]; null: first, first + 1, ...).
  virtual void start(const std::int32_t* ids, std::int64_t first,
                     const PanelRows& to, cudaStream_t stream) const = 0;
};

/// Waits for the stream. Throws std::logic_error for a source that none makes.
std::unique_ptr<RowMaker> make_row_maker(const MadeFrom& from,
                                         std::int64_t num_points,
                                         const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
