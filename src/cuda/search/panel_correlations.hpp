#pragma once

// Correlations of neighbours whose rows come in panels.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/workers.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/prepare/panel_stream.hpp"

namespace fsknn {
namespace cuda {

/// Neighbours whose rows are in this panel.
struct PanelPairs {
  Panel rows, columns;
  const std::int32_t* places = nullptr;  ///< by number; null: the number
  bool in_order =
      false;  ///< the panel holds each entry's neighbour, one by one
  std::int64_t padded = 0;
  Lists lists;
  double* correlation = nullptr;  ///< out: [rows x k]
};

/// Those of one panel.
void start_correlating(const PanelPairs& pairs, cudaStream_t stream);

/// Of all points, which `from` brings in `panels`. Returns whether to go on.
bool correlate_all(PanelPairs pairs, PanelStream& from,
                   PanelBuffer (&panels)[2], Workers& workers,
                   const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
