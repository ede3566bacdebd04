#pragma once

// What is asked of a backend, and what it gives back.

#include <cstdint>
#include <string>
#include <vector>

#include "core/metrics.hpp"

namespace fsknn {

struct Request {
  std::int64_t k = 0;
  const MetricEntry* metric = nullptr;
  /// Points left out: nobody's neighbour, their own rows missing. Ascending.
  std::vector<std::int64_t> skip;
  std::vector<std::int64_t> query_skip;
  int num_threads = 1;
  std::int64_t chunk_size = 0;           ///< 0: automatic
  std::vector<int> devices;              ///< 0-based; empty: all
  double max_device_memory = 0;          ///< bytes on each GPU; 0: what is free
  std::string instruction_set = "auto";  ///< CPU: force one (a testing aid)
};

/// Where the neighbours go: column-major matrices of `rows` rows, one column a
/// rank, as R wants them. Indices are 1-based. `correlation` may be null.
struct Neighbours {
  std::int64_t rows = 0;
  std::int32_t* index = nullptr;
  double* distance = nullptr;
  double* correlation = nullptr;
  std::int32_t missing_index = 0;  ///< written for skipped rows
  double missing_value = 0.0;
};

/// What the work was like; never part of the answer.
struct Stats {
  double pairs_filtered = 0;  ///< pairs that the filter looked at
  double pairs_exact = 0;     ///< pairs that the exact step computed
  double rows_redone = 0;     ///< rows whose candidates overflowed, done again
  double rows_widened = 0;    ///< of those, done by a wider filter alone
  double seconds_prepare = 0, seconds_search = 0, seconds_emit = 0;
  double seconds_device = 0;  ///< GPUs: prepared rows to merged lists
  double bytes_device = 0;    ///< GPUs: most held at a time, on any one
  int num_devices = 0;        ///< GPUs that took part; 0: the CPU
  bool filtered = false;      ///< by a filter
  bool streamed = false;      ///< GPUs: rows were read more than once
};

}  // namespace fsknn
