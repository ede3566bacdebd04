#pragma once

// What can go wrong below R, as facts. The R layer adds the words.

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

/// Of a distance; not so of what is no number.
inline bool is_in_range(double distance) {
  return std::fabs(distance) < HUGE_VAL;
}

/// Host memory could not be had.
struct MemoryFailure : Failure {
  explicit MemoryFailure(double bytes)
      : Failure("not enough memory"), bytes_asked(bytes) {}
  double bytes_asked;
};

/// A temporary file could not be made, written or read. bytes_asked is 0 where
/// it was not about room.
struct DiskFailure : Failure {
  DiskFailure(const std::string& why, double asked, double free)
      : Failure(why), bytes_asked(asked), bytes_free(free) {}
  double bytes_asked, bytes_free;
};

/// The backend cannot be used here, and why.
struct BackendFailure : Failure {
  enum class Why {
    not_built,        ///< without CUDA: `detail` says why, as configure has it
    no_driver,        ///< there is none
    old_driver,       ///< it supports less than what this was built with
    driver_mismatch,  ///< it and its libraries are of different versions
    no_device,        ///< none is seen
    other_devices,    ///< none that this was compiled for
    forked,           ///< CUDA was used before this process was forked
    lost,             ///< CUDA failed for good in this process
    failed,           ///< CUDA failed
    no_such_device,   ///< `device` is none of those that can be used
  };
  explicit BackendFailure(Why which, std::string words = "")
      : Failure("a backend cannot be used"),
        why(which),
        cuda_words(std::move(words)) {}
  Why why;
  std::string cuda_words;       ///< where it was CUDA that said so
  std::string detail;           ///< not_built
  int driver = 0, runtime = 0;  ///< old_driver: of CUDA, as 13000
  int device = -1;              ///< no_such_device: from 0
};

/// CUDA said no. `device` is CUDA's own number, -1 where none is meant.
struct CudaFailure : Failure {
  CudaFailure(const std::string& words, int device_number)
      : Failure(words), cuda_words(words), device(device_number) {}
  std::string cuda_words;
  std::string where;  ///< the call, its file and line
  int device;
  double bytes_asked = 0;  ///< 0: it was not about memory
  double bytes_free = 0;
  bool sticky = false;  ///< CUDA does nothing more in this process
};

/// Not CUDA but the plan said no: what a search must hold at once, at the
/// least, is more than may be used of a device's memory.
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
