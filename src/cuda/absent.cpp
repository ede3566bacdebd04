// Linked where the package is built without CUDA: says so, and why.

#include "core/errors.hpp"
#include "cuda/backend.hpp"
#include "cuda/build_info.hpp"

namespace fsknn {
namespace cuda {

Status status() {
  Status s;
  s.reason = std::string("This installation was built without CUDA: ") +
             cuda_reason;
  return s;
}

std::vector<Device> devices() { return {}; }

void find_neighbours(const Request&, const RowSource&, const RowSource*,
                     const Neighbours&, Progress*, Stats*) {
  throw BackendFailure(status().reason);
}

void prepared_rows(const Request&, const RowSource&,
                   const std::vector<std::int32_t>*, double*, double*) {
  throw BackendFailure(status().reason);
}

}  // namespace cuda
}  // namespace fsknn
