#include "core/files/bin_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/base/pieces.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

// Bytes that are converted at a time.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;

// The number of rows that are transposed at a time: a cache line of each column
// of integers.
std::int64_t rows_at_once(std::int64_t row_bytes) {
  return std::max<std::int64_t>(1,
                                kAtOnce / std::max<std::int64_t>(1, row_bytes));
}

// Values are not byte-swapped here, so big-endian machines are rejected.
void check_byte_order(const std::string& path) {
  const std::uint32_t one = 1;
  unsigned char first;
  std::memcpy(&first, &one, 1);
  if (first != 1)
    throw FileFailure{path, "its byte order is not that of this machine", 0};
}

std::uint32_t head_number(std::int64_t number, const std::string& path) {
  if (number < 0 || number > std::numeric_limits<std::uint32_t>::max())
    throw FileFailure{path, "its head has no room for so many rows", 0};
  return static_cast<std::uint32_t>(number);
}

}  // namespace

BinType bin_type(const std::string& ending) {
  if (ending == "fbin") return BinType::float32;
  if (ending == "dbin") return BinType::float64;
  if (ending == "u8bin") return BinType::uint8;
  if (ending == "i8bin") return BinType::int8;
  if (ending == "ibin") return BinType::int32;
  throw std::invalid_argument("no such ending: " + ending);
}

std::int64_t size_of(BinType type) {
  switch (type) {
    case BinType::float32: return 4;
    case BinType::float64: return 8;
    case BinType::uint8:
    case BinType::int8: return 1;
    case BinType::int32: return 4;
  }
  throw std::invalid_argument("no such type of values");
}

BinReader::BinReader(const std::string& path) : file_(path), path_(path) {
  check_byte_order(path);
  head_.bytes = file_.size();
  std::uint32_t sizes[2];
  static_assert(sizeof sizes == kBinHead, "two numbers");
  if (file_.read(sizes, kBinHead) != kBinHead) return;
  head_.rows = sizes[0];
  head_.columns = sizes[1];
}

template <class Stored, class T, class Convert>
void BinReader::move(std::int64_t start, std::int64_t first, std::int64_t count,
                     T* out, std::int64_t stride, Convert convert) {
  const std::int64_t d = std::max<std::int64_t>(head_.columns, 0);
  const std::int64_t row_bytes = d * static_cast<std::int64_t>(sizeof(Stored));
  const std::int64_t at_once = rows_at_once(row_bytes);
  std::vector<Stored> rows(
      static_cast<std::size_t>(std::min(at_once, count) * d));
  file_.go_to(start + first * row_bytes);
  for (std::int64_t r0 = 0; r0 < count; r0 += at_once) {
    const std::int64_t r1 = std::min(count, r0 + at_once);
    const std::int64_t size = (r1 - r0) * row_bytes;
    if (file_.read(rows.data(), size) != size)
      throw FileFailure{path_, "it is shorter than it should be", 0};
    for (std::int64_t c = 0; c < d; ++c)
      for (std::int64_t r = r0; r < r1; ++r)
        out[c * stride + r] =
            convert(rows[static_cast<std::size_t>((r - r0) * d + c)]);
  }
}

void BinReader::read(BinType type, std::int64_t start, std::int64_t first,
                     std::int64_t count, double* out, std::int64_t stride) {
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (type) {
    case BinType::float32:
      return move<float>(start, first, count, out, stride, plain);
    case BinType::float64:
      return move<double>(start, first, count, out, stride, plain);
    case BinType::uint8:
      return move<std::uint8_t>(start, first, count, out, stride, plain);
    case BinType::int8:
      return move<std::int8_t>(start, first, count, out, stride, plain);
    case BinType::int32:
      return move<std::int32_t>(start, first, count, out, stride, plain);
  }
}

void BinReader::read(BinType type, std::int64_t start, std::int64_t first,
                     std::int64_t count, std::int32_t* out,
                     std::int64_t stride) {
  const auto plain = [](auto value) {
    return static_cast<std::int32_t>(value);
  };
  switch (type) {
    case BinType::uint8:
      return move<std::uint8_t>(start, first, count, out, stride, plain);
    case BinType::int8:
      return move<std::int8_t>(start, first, count, out, stride, plain);
    case BinType::int32:
      return move<std::int32_t>(start, first, count, out, stride, plain);
    case BinType::float32:
    case BinType::float64: break;
  }
  throw std::invalid_argument("values of this type are no integers");
}

void BinReader::read_index(std::int64_t start, std::int64_t first,
                           std::int64_t count, std::int32_t missing,
                           std::int32_t* out, std::int64_t stride) {
  move<std::int32_t>(
      start, first, count, out, stride, [&](std::int32_t number) {
        if (number == std::numeric_limits<std::int32_t>::max())
          throw FileFailure{path_, "it has a number beyond 2^31 - 2", 0};
        if (number < -1)
          throw FileFailure{path_, "it has a number below -1", 0};
        return number == -1 ? missing : number + 1;
      });
}

BinRows::BinRows(const std::string& path, BinType type)
    : type_(type), file_(path) {
  check_byte_order(path);
  // Head and values are of the same open file, whatever the path names later.
  std::uint32_t sizes[2];
  file_.read_at(0, sizes, kBinHead);
  num_points_ = sizes[0];
  num_features_ = sizes[1];
  const std::int64_t bytes = file_.size();
  const std::int64_t row_bytes = num_features_ * size_of(type);
  // The product of both numbers may be beyond 2^63.
  const bool whole = num_points_ == 0 || num_features_ == 0
                         ? bytes == kBinHead
                         : (bytes - kBinHead) % row_bytes == 0 &&
                               (bytes - kBinHead) / row_bytes == num_points_;
  if (!whole) throw FileFailure{path, "it is not as long as its head says", 0};
}

void BinRows::read(std::int64_t first, std::int64_t count, double* out,
                   std::int64_t stride) const {
  const std::int64_t d = num_features_, row_bytes = d * size_of(type_);
  const std::int64_t at_once = std::min(count, rows_at_once(row_bytes));
  std::vector<unsigned char> bytes(
      static_cast<std::size_t>(at_once * row_bytes));
  for (std::int64_t r0 = 0; r0 < count; r0 += at_once) {
    const std::int64_t rows = std::min(at_once, count - r0);
    file_.read_at(kBinHead + (first + r0) * row_bytes, bytes.data(),
                  rows * row_bytes);
    const auto convert = [&](auto example) {
      using Stored = decltype(example);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t f = 0; f < d; ++f) {
          Stored value;
          std::memcpy(&value,
                      bytes.data() + r * row_bytes +
                          f * static_cast<std::int64_t>(sizeof(Stored)),
                      sizeof(Stored));
          out[(r0 + r) * stride + f] = static_cast<double>(value);
        }
    };
    switch (type_) {
      case BinType::float32: convert(0.0f); break;
      case BinType::float64: convert(0.0); break;
      case BinType::uint8: convert(std::uint8_t{0}); break;
      case BinType::int8: convert(std::int8_t{0}); break;
      case BinType::int32: convert(std::int32_t{0}); break;
    }
    poll_after(static_cast<double>(rows * d));
  }
}

BinWriter::BinWriter(const std::string& path, std::int64_t rows,
                     std::int64_t columns)
    : path_(path), columns_(columns), file_(path) {
  check_byte_order(path);
  const std::uint32_t sizes[2] = {head_number(rows, path),
                                  head_number(columns, path)};
  file_.write(sizes, kBinHead);
}

template <class Stored, class T, class Convert>
void BinWriter::move(const T* values, std::int64_t count, std::int64_t stride,
                     int num_threads, Convert convert) {
  const std::int64_t row_bytes =
      columns_ * static_cast<std::int64_t>(sizeof(Stored));
  const std::int64_t a_piece = rows_at_once(row_bytes);
  const std::int64_t at_once = std::max(1, num_threads) * a_piece;
  std::vector<Stored> rows(
      static_cast<std::size_t>(std::min(at_once, count) * columns_));
  for (std::int64_t r0 = 0; r0 < count; r0 += at_once) {
    const std::int64_t r1 = std::min(count, r0 + at_once);
    run_pieces((r1 - r0 + a_piece - 1) / a_piece, num_threads, {}, [&] {
      return [&](std::int64_t piece) {
        const std::int64_t first = r0 + piece * a_piece;
        const std::int64_t end = std::min(r1, first + a_piece);
        for (std::int64_t c = 0; c < columns_; ++c)
          for (std::int64_t r = first; r < end; ++r)
            rows[static_cast<std::size_t>((r - r0) * columns_ + c)] =
                convert(values[c * stride + r]);
      };
    });
    file_.write(rows.data(), (r1 - r0) * row_bytes);
  }
}

void BinWriter::put(BinType type, const double* values, std::int64_t count,
                    std::int64_t stride, int num_threads) {
  const auto rounded = [&](double value) {
    const float near = static_cast<float>(value);
    if (std::isinf(near) && !std::isinf(value))
      throw FileFailure{path_, "a value is too large for 4 bytes", 0};
    return near;
  };
  // The comparisons are false for NaN.
  const auto whole = [&](double value, double low, double high) {
    if (!(value >= low && value <= high) || value != std::floor(value))
      throw FileFailure{path_, "a value is no whole number that it can hold",
                        0};
    return value;
  };
  switch (type) {
    case BinType::float32:
      return move<float>(values, count, stride, num_threads, rounded);
    case BinType::float64:
      return move<double>(values, count, stride, num_threads,
                          [](double v) { return v; });
    case BinType::uint8:
      return move<std::uint8_t>(
          values, count, stride, num_threads, [&](double v) {
            return static_cast<std::uint8_t>(whole(v, 0, 255));
          });
    case BinType::int8:
      return move<std::int8_t>(
          values, count, stride, num_threads, [&](double v) {
            return static_cast<std::int8_t>(whole(v, -128, 127));
          });
    case BinType::int32:
      return move<std::int32_t>(values, count, stride, num_threads,
                                [&](double v) {
                                  return static_cast<std::int32_t>(
                                      whole(v, -2147483648.0, 2147483647.0));
                                });
  }
}

void BinWriter::put_index(const std::int32_t* values, std::int64_t count,
                          std::int64_t stride, std::int32_t missing,
                          int num_threads) {
  move<std::int32_t>(values, count, stride, num_threads,
                     [missing](std::int32_t number) {
                       return number == missing ? -1 : number - 1;
                     });
}

void BinWriter::finish() { file_.finish(); }

}  // namespace fsknn
