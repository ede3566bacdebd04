#pragma once

// XXH64 (Collet, "xxHash fast digest algorithm", version 0.1.1), and digests of
// a matrix's values by it, to detect changed bytes. It does not protect against
// deliberate collisions.

#include <cstdint>
#include <string>
#include <vector>

#include "core/rows/source.hpp"

namespace fsknn {

/// XXH64 of bytes in parts; the result does not depend on their sizes.
class Digest {
 public:
  explicit Digest(std::uint64_t seed = 0);
  void take(const void* bytes, std::int64_t size);
  /// The digest of all bytes so far; more may follow.
  std::uint64_t value() const;

 private:
  static constexpr int kStripe = 32;  ///< bytes that the lanes take at once
  std::uint64_t seed_;
  std::uint64_t lanes_[4];
  unsigned char left_[kStripe];  ///< incomplete stripe: size_ % kStripe bytes
  std::uint64_t size_ = 0;
};

/// XXH64 of any bytes, with seed 0. Calls poll().
std::uint64_t digest_bytes(const void* bytes, std::int64_t size);

/// digest_source() of rows that arrive one by one, in any order.
class RowDigests {
 public:
  RowDigests(std::int64_t num_points, std::int64_t num_features);
  /// Several threads may call it at once, for different rows.
  void take(std::int64_t point, const double* row);
  /// The digest after all rows were taken.
  std::string value() const;

 private:
  const std::int64_t num_features_;
  std::vector<std::uint64_t> of_row_;  ///< [num_points]
};

/// The digest of a source's shape and of its values as doubles, row by row, as
/// 16 hexadecimal digits. Equal numbers in a matrix of another type, and any
/// number of threads, give the same digest. -0 differs from 0; all NaN are
/// equal.
std::string digest_source(const RowSource& source, int num_threads);

/// Converts a digest to 16 hexadecimal digits, and back. Throws
/// std::invalid_argument for any other text.
std::string hexadecimal(std::uint64_t digest);
std::uint64_t from_hexadecimal(const std::string& text);

}  // namespace fsknn
