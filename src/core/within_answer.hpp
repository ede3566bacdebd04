#pragma once

// Where the pairs within a distance go: memory, or a file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/temporary_file.hpp"

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

/// A temporary file, for more entries than memory holds. It is cut into parts
/// of whole rows: entries go to their part as they come, and each part is
/// brought in order at last. So the file is as large as the entries are, and
/// memory holds a part for each thread, and a few thousand entries of each
/// part.
class WithinFile final : public WithinAnswer {
 public:
  struct Found {
    double distance;
    double correlation;
    std::int32_t index;
    std::int32_t row;  ///< from 0
  };

  /// folder: for the file. part_bytes: of a part, unless one row is larger.
  explicit WithinFile(std::string folder,
                      std::int64_t part_bytes = std::int64_t{1} << 28);
  ~WithinFile() override;
  void allocate(const Counts& counts) override;
  void put(std::int64_t row, std::int32_t at,
           const WithinEntry& entry) override;
  void finish(const Counts& counts, int num_threads) override;

  // After finish(): the parts, one after the other, have the rows in order.

  std::int64_t num_parts() const {
    return static_cast<std::int64_t>(parts_.size());
  }
  std::vector<Found> entries(std::int64_t piece) const;

 private:
  struct Part;
  void write(const Part& part, std::int64_t at, const std::vector<Found>& what);

  const std::string folder_;
  const std::int64_t part_bytes_;
  std::unique_ptr<TemporaryFile> file_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::int32_t> part_of_row_;
};

}  // namespace fsknn
