#pragma once

// Faults that tests inject. Some cannot be provoked on a given machine (a lost
// device, an old driver, different GPUs), others not at every call (too little
// memory). No CUDA types.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

/// The nth checked call whose text contains `text` is not made and fails with
/// CUDA's error number `code`. After a sticky error all later calls on that
/// device fail. The text of an allocation is "cudaMalloc", that of pinned
/// memory "cudaHostAlloc".
struct Fault {
  std::string text;
  std::int64_t nth = 0;  ///< from 1; 0: only counts calls
  int code = 0;
  int device = -1;  ///< CUDA's number of the only device; -1: any
};

struct FaultReport {
  std::int64_t matched = 0;  ///< calls with that text, on that device
  bool fired = false;
};

/// false in a build without CUDA, where the others do nothing.
bool can_inject();
void arm_fault(const Fault& fault);
/// Also forgets an injected loss.
FaultReport disarm_fault();

/// An invented answer of CUDA about the machine.
struct FakeMachine {
  int code = 0;                 ///< CUDA's error number for the device query
  int driver = 0, runtime = 0;  ///< versions, such as 13000
  std::vector<Device> devices;
};

/// Replaces the machine from now on; none: the real machine.
void fake_machine(const std::optional<FakeMachine>& machine);

}  // namespace cuda
}  // namespace fsknn
