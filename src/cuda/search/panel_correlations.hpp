#pragma once

// Computes correlations of neighbours whose rows come in panels.

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
  bool in_order = false;  ///< entry by entry, the panel holds the neighbour
  std::int64_t padded = 0;
  Lists lists;
  double* correlation = nullptr;  ///< out: [rows x k]
};

/// Computes those of one panel.
void start_correlating(const PanelPairs& pairs, cudaStream_t stream);

/// Computes those of all points. Returns whether to continue.
bool correlate_all(PanelPairs pairs, const Panels& panels, Workers& workers,
                   const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
