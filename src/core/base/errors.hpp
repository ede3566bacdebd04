#pragma once

// Failures below R, as facts. The R layer adds the words.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace fsknn {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The user asked to stop.
struct Interrupted : Failure {
  Interrupted() : Failure("interrupted") {}
};

/// A distance, or a row's sum, does not fit a double.
struct RangeFailure : Failure {
  RangeFailure() : Failure("a distance is beyond the range of a double") {}
};

/// Whether a distance is finite; false for NaN.
inline bool is_in_range(double distance) {
  return std::fabs(distance) < HUGE_VAL;
}

/// Host memory could not be allocated.
struct MemoryFailure : Failure {
  explicit MemoryFailure(double bytes)
      : Failure("not enough memory"), bytes_asked(bytes) {}
  double bytes_asked;
};

/// A temporary file could not be created, written or read. bytes_asked is 0 if
/// space was not the cause.
struct DiskFailure : Failure {
  DiskFailure(const std::string& why, double asked, double free)
      : Failure(why), bytes_asked(asked), bytes_free(free) {}
  double bytes_asked, bytes_free;
};

/// The backend cannot be used here, and why.
struct BackendFailure : Failure {
  enum class Why {
    not_built,        ///< without CUDA: `detail` is configure's reason
    no_driver,        ///< there is no driver
    old_driver,       ///< it supports an older CUDA than this was built with
    driver_mismatch,  ///< the driver and its libraries differ in version
    no_device,        ///< no GPU is visible
    other_devices,    ///< no GPU that this was compiled for
    forked,           ///< CUDA was used before this process was forked
    lost,             ///< CUDA failed permanently in this process
    failed,           ///< CUDA failed
    no_such_device,   ///< `device` is not usable
  };
  explicit BackendFailure(Why which, std::string words = "")
      : Failure("a backend cannot be used"),
        why(which),
        cuda_words(std::move(words)) {}
  Why why;
  std::string cuda_words;       ///< empty if CUDA gave no message
  std::string detail;           ///< not_built
  int driver = 0, runtime = 0;  ///< old_driver: CUDA versions, as 13000
  int device = -1;              ///< no_such_device: from 0
};

/// A call of CUDA failed. `device` is CUDA's own number, -1 if none applies.
struct CudaFailure : Failure {
  CudaFailure(const std::string& words, int device_number)
      : Failure(words), cuda_words(words), device(device_number) {}
  std::string cuda_words;
  std::string where;  ///< the call, its file and line
  int device;
  double bytes_asked = 0;  ///< 0: memory was not the cause
  double bytes_free = 0;
  bool sticky = false;  ///< CUDA cannot be used again in this process
};

/// The plan failed, not CUDA: the least that a search must hold at once exceeds
/// the usable memory of a device.
struct PlanFailure : CudaFailure {
  enum class Held { two_chunks, all_points, triples };
  PlanFailure(Held what, double bytes, double usable, int device_number)
      : CudaFailure("", device_number), held(what) {
    bytes_asked = bytes;
    bytes_free = usable;
  }
  Held held;
};

}  // namespace fsknn
