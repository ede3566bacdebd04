#pragma once

// What the rest of the package knows of CUDA: no CUDA type in sight. Compiled
// from *.cu where configure found a toolkit, else from absent.cpp.

#include <string>
#include <vector>

#include "core/progress.hpp"
#include "core/request.hpp"
#include "core/source.hpp"

namespace fsknn {
namespace cuda {

struct Status {
  bool built = false;    ///< this installation holds CUDA code
  bool usable = false;   ///< and a device that can run it is here
  std::string reason;    ///< why not; empty when usable
  std::string toolkit;   ///< the toolkit's version; empty when not built
};

struct Device {
  int cuda_id = 0;       ///< CUDA's own number
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  double bytes_total = 0, bytes_free = 0;
  int multiprocessors = 0;
  bool half_products = false;  ///< can run the filter
};

/// Neither throws; both say what is so at this moment.
Status status();
std::vector<Device> devices();

/// As cpu::find_neighbours(), on the request's devices (numbers of the rows of
/// devices(), from 0; empty: all). Throws BackendFailure where not usable.
void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats);

/// A testing aid: rows as the request's first device prepares them, [points x
/// padded features], row-major, and their sums. ids: of these points only, from
/// 0; null: of all.
void prepared_rows(const Request& request, const RowSource& points,
                   const std::vector<std::int32_t>* ids, double* rows,
                   double* sums);

}  // namespace cuda
}  // namespace fsknn
