#pragma once

// XXH64 (Collet, "xxHash fast digest algorithm", version 0.1.1), and digests of
// a matrix's values by it: to notice that bytes are others than they were. No
// protection against somebody who wants two to look alike.

#include <cstdint>
#include <string>
#include <vector>

#include "core/rows/source.hpp"

namespace fsknn {

/// XXH64 of bytes that come part by part: the same however they are cut.
class Digest {
 public:
  explicit Digest(std::uint64_t seed = 0);
  void take(const void* bytes, std::int64_t size);
  /// Of all that was taken; more may be taken after.
  std::uint64_t value() const;

 private:
  static constexpr int kStripe = 32;  ///< bytes that go into the lanes at once
  std::uint64_t seed_;
  std::uint64_t lanes_[4];
  unsigned char left_[kStripe];  ///< too few yet for a stripe: size_ % kStripe
  std::uint64_t size_ = 0;
};

/// XXH64 of any bytes, with seed 0. Hears poll().
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

/// As 16 hexadecimal digits, and back. Throws std::invalid_argument for any
/// other text.
std::string hexadecimal(std::uint64_t digest);
std::uint64_t from_hexadecimal(const std::string& text);

}  // namespace fsknn
