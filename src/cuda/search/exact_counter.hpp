#pragma once

// How many pairs the exact step made (ExactStep::counts).

#include <array>
#include <cstdint>
#include <numeric>

#include "cuda/device/transfer.hpp"
#include "cuda/exact/candidates.hpp"

namespace fsknn {
namespace cuda {

class ExactCounter {
 public:
  ExactCounter() : counts_(kExactCounts) {}
  unsigned long long* data() { return counts_.data(); }
  void clear(const Stream& stream) { clear_from(counts_, 0, stream); }
  /// Since then; waits for the stream.
  double total(const Stream& stream) const {
    std::array<unsigned long long, kExactCounts> counts;
    download(counts.data(), counts_, kExactCounts, stream);
    stream.wait();
    return static_cast<double>(
        std::accumulate(counts.begin(), counts.end(), 0ull));
  }

 private:
  DeviceBuffer<unsigned long long> counts_;
};

}  // namespace cuda
}  // namespace fsknn
