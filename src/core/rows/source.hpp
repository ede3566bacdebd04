#pragma once

// Stage "source": delivers blocks of rows, as doubles.

#include <cstdint>
#include <limits>

#include "core/base/poll.hpp"

namespace fsknn {

class MadeSource;

/// The inputs of rows that are made when they are read
/// (core/rows/made_rows.hpp). A device can make such rows itself: the small
/// inputs are copied to it once, and the rows never.
struct MadeFrom {
  const MadeSource* source = nullptr;  ///< null: there are no small inputs
  /// Row i is the source's row numbers[i]; null: its row i.
  const std::int32_t* numbers = nullptr;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::int64_t num_points() const = 0;
  virtual std::int64_t num_features() const = 0;
  /// Writes rows first .. first + count - 1 to out, row-major, with `stride`
  /// doubles from row to row. Writes no column beyond num_features(). Several
  /// threads may call it at once.
  virtual void read(std::int64_t first, std::int64_t count, double* out,
                    std::int64_t stride) const = 0;
  /// Whether rows are made from much smaller data when they are read. A backend
  /// then makes them again instead of keeping all.
  virtual bool made_when_read() const { return false; }
  /// The inputs, if a device can make the rows, too.
  virtual MadeFrom made_from() const { return {}; }
  /// Whether rows are in a file because they do not fit in memory. A backend
  /// then holds some of them at a time.
  virtual bool on_disk() const { return false; }
  /// Whether rows already have the metric's form of length 1.
  virtual bool prepared() const { return false; }
};

/// Points first .. first + count - 1 of a source. on_disk: whether to treat
/// them as if they were on disk.
class RowRange final : public RowSource {
 public:
  RowRange(const RowSource& whole, std::int64_t first, std::int64_t count,
           bool on_disk = false)
      : whole_(whole), first_(first), count_(count), on_disk_(on_disk) {}
  std::int64_t num_points() const override { return count_; }
  std::int64_t num_features() const override { return whole_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    whole_.read(first_ + first, count, out, stride);
  }
  bool made_when_read() const override { return whole_.made_when_read(); }
  bool on_disk() const override { return on_disk_; }
  bool prepared() const override { return whole_.prepared(); }

 private:
  const RowSource& whole_;
  std::int64_t first_, count_;
  bool on_disk_;
};

/// The number of rows to read at once: about 1 MiB, and whole cache lines of a
/// column-major matrix. It is 1 for very long rows, so that an interrupt need
/// not wait for eight.
inline std::int64_t rows_per_block(std::int64_t num_features) {
  if (num_features > (std::int64_t{1} << 20)) return 1;
  const std::int64_t rows = (std::int64_t{1} << 17) / num_features / 8 * 8;
  return rows < 8 ? 8 : (rows > 64 ? 64 : rows);
}

/// A column-major matrix in memory, as R holds it; not owned.
template <class T>
class MatrixSource final : public RowSource {
 public:
  MatrixSource(const T* values, std::int64_t num_points,
               std::int64_t num_features)
      : values_(values), n_(num_points), d_(num_features) {}
  const T* values() const { return values_; }
  std::int64_t num_points() const override { return n_; }
  std::int64_t num_features() const override { return d_; }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    // Eight rows at a time use a whole cache line of each column.
    for (std::int64_t r0 = 0; r0 < count; r0 += 8) {
      const std::int64_t r1 = r0 + 8 < count ? r0 + 8 : count;
      for (std::int64_t f0 = 0; f0 < d_; f0 += kFeaturesAtOnce) {
        const std::int64_t f1 =
            f0 + kFeaturesAtOnce < d_ ? f0 + kFeaturesAtOnce : d_;
        for (std::int64_t f = f0; f < f1; ++f) {
          const T* column = values_ + f * n_ + first;
          for (std::int64_t r = r0; r < r1; ++r)
            out[r * stride + f] = as_double(column[r]);
        }
        // This reads a cache line, and often a separate page, of each column.
        poll_after(30.0 * static_cast<double>(f1 - f0));
      }
    }
  }

  // R's integer and logical NA is the smallest integer.
  static constexpr double as_double(double x) { return x; }
  static constexpr double as_double(std::int32_t x) {
    return x == std::numeric_limits<std::int32_t>::min()
               ? std::numeric_limits<double>::quiet_NaN()
               : static_cast<double>(x);
  }

 private:
  static constexpr std::int64_t kFeaturesAtOnce = 4096;
  const T* values_;
  std::int64_t n_, d_;
};

}  // namespace fsknn
