#pragma once

#include <cstdint>
#include <vector>

namespace fsknn {

/// Replaces d values by their ranks from 1; equal values share the average of
/// their ranks. -0.0 equals 0.0.
class AverageRanks {
 public:
  void operator()(double* x, std::int64_t d);

 private:
  struct Entry {
    double value;
    std::int64_t at;
  };
  std::vector<Entry> sorted_, spare_;
};

}  // namespace fsknn
