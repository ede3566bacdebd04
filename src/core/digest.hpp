#pragma once

// A digest of a matrix's values: to notice that they are other values than they
// were. No protection against somebody who wants two matrices to look alike.

#include <cstdint>
#include <string>
#include <vector>

#include "core/source.hpp"

namespace fsknn {

/// 64 bits of any bytes.
std::uint64_t digest_bytes(const void* bytes, std::int64_t size);

/// digest_source() of rows that come one by one, in any order.
class RowDigests {
 public:
  RowDigests(std::int64_t num_points, std::int64_t num_features);
  /// By several threads at once, each with rows of its own.
  void take(std::int64_t point, const double* row);
  /// When all rows were taken.
  std::string value() const;

 private:
  const std::int64_t num_features_;
  std::vector<std::uint64_t> of_row_;  ///< [num_points]
};

/// Of a source's shape and of its values as doubles, row by row: the same for
/// the same numbers in a matrix of another type, and on any number of threads.
/// -0 differs from 0; all NaN are equal. As 16 hexadecimal digits.
std::string digest_source(const RowSource& source, int num_threads);

/// As 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t digest);

}  // namespace fsknn
