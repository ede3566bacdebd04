#pragma once

// Storage for the pairs within a distance.

#include <cstdint>
#include <vector>

namespace fsknn {

/// A pair as an entry of a row.
struct WithinEntry {
  double distance;
  double correlation;  ///< for rows of length 1; else 0
  std::int32_t index;  ///< of the other point, from 1
};

/// Accepts entries in any order, and finally has them row by row, sorted by
/// (distance, index).
class WithinAnswer {
 public:
  using Counts = std::vector<std::int32_t>;
  virtual ~WithinAnswer() = default;
  /// Allocates counts[row] entries for each row, on the first thread.
  virtual void allocate(const Counts& counts) = 0;
  /// Stores entry number `at` of a row, each once, from any thread.
  virtual void put(std::int64_t row, std::int32_t at,
                   const WithinEntry& entry) = 0;
  /// Sorts the entries after all were stored.
  virtual void finish(const Counts& counts, int num_threads) = 0;
};

/// In memory, with a range for each row.
class WithinRows : public WithinAnswer {
 public:
  /// A row with entries; correlation may be null.
  struct Row {
    std::int32_t* index;
    double* distance;
    double* correlation;
  };
  virtual Row row(std::int64_t row) = 0;

  void put(std::int64_t row, std::int32_t at, const WithinEntry& entry) final {
    const Row to = this->row(row);
    to.index[at] = entry.index;
    to.distance[at] = entry.distance;
    if (to.correlation != nullptr) to.correlation[at] = entry.correlation;
  }
  void finish(const Counts& counts, int num_threads) final;

 private:
  void sort_row(std::int64_t row, std::int32_t size);
};

}  // namespace fsknn
