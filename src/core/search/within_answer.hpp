#pragma once

// Where the pairs within a distance go.

#include <cstdint>
#include <vector>

namespace fsknn {

/// A pair, as a row has it.
struct WithinEntry {
  double distance;
  double correlation;  ///< of rows of length 1; else 0
  std::int32_t index;  ///< of the other point, from 1
};

/// Takes entries in any order, and has them at last row by row, those of a row
/// by (distance, index).
class WithinAnswer {
 public:
  using Counts = std::vector<std::int32_t>;
  virtual ~WithinAnswer() = default;
  /// Makes room, by the first thread: counts[row] entries for each row.
  virtual void allocate(const Counts& counts) = 0;
  /// Takes a row's entry number `at`, each once, from any thread.
  virtual void put(std::int64_t row, std::int32_t at,
                   const WithinEntry& entry) = 0;
  /// All were put: brings them in order.
  virtual void finish(const Counts& counts, int num_threads) = 0;
};

/// Memory, a stretch for each row.
class WithinRows : public WithinAnswer {
 public:
  /// Of a row with entries; correlations may be null.
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
