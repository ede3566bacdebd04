#pragma once

// Device memory and streams that are kept for the next search. To allocate and
// to free them takes longer than the search of a few queries.

#include <cuda_runtime.h>

#include "cuda/device/check.hpp"

namespace fsknn {
namespace cuda {

/// While any of these exists, memory and streams that are given back are kept,
/// up to a limit. The last one frees them.
class KeepingSpares {
 public:
  KeepingSpares();
  KeepingSpares(const KeepingSpares&) = delete;
  KeepingSpares& operator=(const KeepingSpares&) = delete;
  ~KeepingSpares();
};

/// Takes memory of the current device from what is kept; `data` is null if
/// nothing suits. One thread at a time uses a device. Waits for the device if
/// memory was given back since the last wait, as cudaFree() does: earlier work
/// may still use it.
Allocation take_spare(double bytes);
/// Keeps memory. Returns false if it must be freed.
bool keep_spare(const Allocation& allocation) noexcept;
/// Frees what is kept on a device. Returns whether there was anything.
bool free_spares(int device) noexcept;
double bytes_spare(int device);

/// The same for streams; null: none is kept. A stream runs its earlier work
/// first.
cudaStream_t take_spare_stream();
bool keep_spare_stream(cudaStream_t stream, int device) noexcept;

}  // namespace cuda
}  // namespace fsknn
