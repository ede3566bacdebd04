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

/// The backend cannot be used here, and why; in CUDA's own words too, where it
/// was CUDA that said so.
struct BackendFailure : Failure {
  explicit BackendFailure(const std::string& why, std::string words = "")
      : Failure(why), cuda_words(std::move(words)) {}
  std::string cuda_words;
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
  enum class Held { two_chunks, all_points };
  PlanFailure(Held what, double bytes, double usable, int device_number)
      : CudaFailure("", device_number), held(what) {
    bytes_asked = bytes;
    bytes_free = usable;
  }
  Held held;
};

}  // namespace fsknn
