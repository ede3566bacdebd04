#pragma once

// Shards of a long answer: how each is told from what it was.

#include <cstdint>
#include <string>

namespace fsknn {

/// What is remembered of a file.
struct FileFacts {
  std::int64_t bytes = 0;
  /// XXH64 of the first and the last kShardEnds bytes, soon read: by these a
  /// file of another answer is told, and one whose writing went wrong.
  std::string ends;
  std::string whole;  ///< XXH64 of all bytes; empty where it was not asked for
};

constexpr std::int64_t kShardEnds = std::int64_t{1} << 16;

/// Hears poll(). Throws FileFailure where there is no such file.
FileFacts facts_of_file(const std::string& path, bool whole);

/// Places in columns of a sparse matrix, filled row by row: of each entry of
/// `rows` rows of a column-major index matrix (numbers of columns from 1,
/// `missing` where there is none) its row goes to row_of, and its value, if
/// there are any, to values. next: for each column where its next entry goes,
/// moved on. Throws std::out_of_range for a number beyond num_columns.
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
