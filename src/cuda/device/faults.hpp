#pragma once

// Faults made up for tests: what can't be provoked on the machine at hand (a
// lost device, an old driver, GPUs of different kinds) and what can't be
// provoked at every place (too little memory). No CUDA type in sight.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

/// The nth checked call whose text holds `text` fails with CUDA's error number
/// `code`, without being made. After an error that a real device does not
/// recover from, so do all calls on that device. An allocation's text is
/// "cudaMalloc", one of pinned memory "cudaHostAlloc".
struct Fault {
  std::string text;
  std::int64_t nth = 0;  ///< from 1; 0: none fails, calls are counted
  int code = 0;
  int device = -1;  ///< CUDA's number: on that device only; -1: any
};

struct FaultReport {
  std::int64_t matched = 0;  ///< calls with that text, on that device
  bool fired = false;
};

/// false in a build without CUDA, where the others do nothing.
bool can_inject();
void arm_fault(const Fault& fault);
/// Forgets a loss that was made up, too.
FaultReport disarm_fault();

/// What CUDA says of the machine, made up.
struct FakeMachine {
  int code = 0;                 ///< CUDA's error number when asked for devices
  int driver = 0, runtime = 0;  ///< versions, as 13000
  std::vector<Device> devices;
};

/// From now on this is what there is; none: the real machine again.
void fake_machine(const std::optional<FakeMachine>& machine);

}  // namespace cuda
}  // namespace fsknn
