#pragma once

// Shards of a long answer: how a change of their files is detected.

#include <cstdint>
#include <string>

namespace fsknn {

/// The facts that are stored about a file.
struct FileFacts {
  std::int64_t bytes = 0;
  /// XXH64 of the first and the last kShardEnds bytes, which is fast. It
  /// detects a file of another answer, or an incomplete one.
  std::string ends;
  std::string whole;  ///< XXH64 of all bytes; empty if not requested
};

constexpr std::int64_t kShardEnds = std::int64_t{1} << 16;

/// Calls poll(). Throws FileFailure if the file is missing.
FileFacts facts_of_file(const std::string& path, bool whole);

/// Fills the columns of a sparse matrix row by row. index: `rows` rows of a
/// column-major matrix of column numbers from 1, or `missing`. For each entry,
/// its row is written to row_of, and its value to values, if not null. next:
/// the position of each column's next entry, which is advanced. Throws
/// std::out_of_range for a number beyond num_columns.
struct SparsePlaces {
  std::int64_t num_columns = 0;
  double* next = nullptr;  ///< [num_columns], whole numbers
  std::int32_t* row_of = nullptr;
  double* values = nullptr;
};

void put_in_columns(const SparsePlaces& places, const std::int32_t* index,
                    const double* distance, std::int64_t rows,
                    std::int64_t columns, std::int64_t first_row,
                    std::int32_t missing);

}  // namespace fsknn
