#pragma once

// The files of big-ann-benchmarks (https://big-ann-benchmarks.com): two
// unsigned integers of 4 bytes, n rows and d columns, and n x d values, row
// after row, in the byte order of most machines (the lowest first). By the
// ending of the name
//
//    .fbin  4-byte floats     .u8bin, .i8bin  bytes, without and with a sign
//    .ibin  4-byte integers: numbers of points, from 0
//    .dbin  doubles: ours, for distances with all their digits
//
// Ground truth has n x d integers, and n x d floats after them, in one file.

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/durable.hpp"
#include "core/files/output_file.hpp"

namespace fsknn {

enum class BinType { float32, float64, uint8, int8, int32 };

/// By an ending, without its dot. Throws std::invalid_argument for another one.
BinType bin_type(const std::string& ending);
/// Bytes of one value.
std::int64_t size_of(BinType type);

constexpr std::int64_t kBinHead = 8;  ///< bytes before the first value

/// What the head says, which need not be so.
struct BinHead {
  std::int64_t bytes = 0;  ///< of the whole file
  std::int64_t rows = -1,
               columns = -1;  ///< -1: the file is shorter than a head
};

/// Reads values of one type. Throws FileFailure, also where a file ends before
/// what is asked for.
class BinReader {
 public:
  explicit BinReader(const std::string& path);
  const BinHead& head() const { return head_; }

  /// `count` rows from `first` on, of a block of values that begins at byte
  /// `start`: to a column-major matrix with `stride` rows, its rows from `out`
  /// on. Integers become double or int as they are; read_index() adds 1 to
  /// them, makes -1 `missing` and throws for any other that is below 0.
  void read(BinType type, std::int64_t start, std::int64_t first,
            std::int64_t count, double* out, std::int64_t stride);
  void read(BinType type, std::int64_t start, std::int64_t first,
            std::int64_t count, std::int32_t* out, std::int64_t stride);
  void read_index(std::int64_t start, std::int64_t first, std::int64_t count,
                  std::int32_t missing, std::int32_t* out, std::int64_t stride);

 private:
  template <class Stored, class T, class Convert>
  void move(std::int64_t start, std::int64_t first, std::int64_t count, T* out,
            std::int64_t stride, Convert convert);
  InputFile file_;
  const std::string path_;
  BinHead head_;
};

/// Writes one file, all or nothing (see OutputFile), value by value in the
/// order of the file. Throws FileFailure.
class BinWriter {
 public:
  BinWriter(const std::string& path, std::int64_t rows, std::int64_t columns);

  /// Rows of a column-major matrix, `stride` rows in all.
  void put(BinType type, const double* values, std::int64_t count,
           std::int64_t stride);
  /// Numbers from 1, `missing` as -1.
  void put_index(const std::int32_t* values, std::int64_t count,
                 std::int64_t stride, std::int32_t missing);
  /// The file has its name then.
  void finish();

 private:
  template <class Stored, class T, class Convert>
  void move(const T* values, std::int64_t count, std::int64_t stride,
            Convert convert);
  const std::string path_;
  const std::int64_t columns_;
  OutputFile file_;
};

}  // namespace fsknn
