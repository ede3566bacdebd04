#pragma once

// What can go wrong below R, as facts. The R layer adds the words.

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

/// Host memory could not be had.
struct MemoryFailure : Failure {
  explicit MemoryFailure(double bytes)
      : Failure("not enough memory"), bytes_asked(bytes) {}
  double bytes_asked;
};

/// The backend cannot be used here, and why.
struct BackendFailure : Failure {
  using Failure::Failure;
};

/// CUDA said no. `device` is CUDA's own number, -1 where none is meant.
struct CudaFailure : Failure {
  CudaFailure(const std::string& what, int device_number, double asked,
              double free, std::string words)
      : Failure(what),
        device(device_number),
        bytes_asked(asked),
        bytes_free(free),
        cuda_words(std::move(words)) {}
  int device;
  double bytes_asked;
  double bytes_free;
  std::string cuda_words;
};

}  // namespace fsknn
