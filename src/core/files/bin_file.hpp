#pragma once

// The file format of big-ann-benchmarks (https://big-ann-benchmarks.com): two
// 4-byte unsigned integers, n rows and d columns, then n x d values, row by
// row, little-endian. The file extension gives the type of values:
//
//    .fbin  4-byte floats     .u8bin, .i8bin  unsigned and signed bytes
//    .ibin  4-byte integers: numbers of points, from 0
//    .dbin  doubles: our own extension, for distances with all digits
//
// Ground truth has n x d integers followed by n x d floats in one file.

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/durable.hpp"
#include "core/files/output_file.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

enum class BinType { float32, float64, uint8, int8, int32 };

/// The type for an extension, without its dot. Throws std::invalid_argument for
/// an unknown one.
BinType bin_type(const std::string& ending);
/// Bytes of one value.
std::int64_t size_of(BinType type);

constexpr std::int64_t kBinHead = 8;  ///< bytes before the first value

/// The header, which may be wrong.
struct BinHead {
  std::int64_t bytes = 0;  ///< of the whole file
  std::int64_t rows = -1,
               columns = -1;  ///< -1: the file is shorter than a head
};

/// Reads values of one type. Throws FileFailure, also if the file ends before
/// the requested values.
class BinReader {
 public:
  explicit BinReader(const std::string& path);
  const BinHead& head() const { return head_; }

  /// Reads `count` rows from `first` on, of a block of values that begins at
  /// byte `start`. They go to a column-major matrix with `stride` rows, from
  /// `out` on. Integers become double or int unchanged. read_index() adds 1 to
  /// them, converts -1 to `missing`, and throws for other negative values.
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

/// The points of such a file, read where they are.
class BinRows final : public RowSource {
 public:
  /// Throws FileFailure, also if the file is not as long as its head says.
  BinRows(const std::string& path, BinType type);

  std::int64_t num_points() const override { return num_points_; }
  std::int64_t num_features() const override { return num_features_; }
  /// Throws FileFailure. NaN stays NaN.
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;
  bool on_disk() const override { return true; }

 private:
  const BinType type_;
  const InputFile file_;
  std::int64_t num_points_ = 0, num_features_ = 0;
};

/// Writes one file completely or not at all (see OutputFile), in the order of
/// its values. Throws FileFailure.
class BinWriter {
 public:
  BinWriter(const std::string& path, std::int64_t rows, std::int64_t columns);

  /// Writes rows of a column-major matrix that has `stride` rows.
  void put(BinType type, const double* values, std::int64_t count,
           std::int64_t stride, int num_threads = 1);
  /// Writes numbers from 1; `missing` becomes -1.
  void put_index(const std::int32_t* values, std::int64_t count,
                 std::int64_t stride, std::int32_t missing,
                 int num_threads = 1);
  /// Gives the file its name.
  void finish();

 private:
  template <class Stored, class T, class Convert>
  void move(const T* values, std::int64_t count, std::int64_t stride,
            int num_threads, Convert convert);
  const std::string path_;
  const std::int64_t columns_;
  OutputFile file_;
};

}  // namespace fsknn
