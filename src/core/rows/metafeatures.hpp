#pragma once

// Metafeatures (Arefin 2012): every pair of a matrix's rows under an operator.
// They are computed from the small matrix when they are read, and never stored.
//
// Order: first the rows themselves; then, for each operator, the pairs (i, j),
// i < j, where i changes slowest; last, rows that are in no pair (a clinical
// outcome).

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/contract/scaling.hpp"
#include "core/rows/made_rows.hpp"

namespace fsknn {

enum class PairOperator : std::int32_t { minus, plus, times, divided };

/// One correctly rounded operation, with the same bits on host and device.
FSKNN_HD static inline double combine(PairOperator op, double a, double b) {
  switch (op) {
    case PairOperator::minus: return a - b;
    case PairOperator::plus: return a + b;
    case PairOperator::times: return a * b;
    case PairOperator::divided: return a / b;
  }
  return NAN;
}

/// The rows of the small matrix that a metafeature is made from. (In it, the
/// rows that are in no pair come last.)
struct MadeOf {
  std::int32_t first, second;  ///< second: -1 for a row itself
  PairOperator op;
};

/// The number of pairs (i', j), i' < j, of `rows` rows with i' < i.
FSKNN_HD static inline std::int64_t pairs_before(std::int64_t i,
                                                 std::int64_t rows) {
  return i * (2 * rows - i - 1) / 2;
}

/// Maps numbers of metafeatures to the rows that they are made from. A plain
/// struct, so that a kernel can take it.
struct MetafeatureOrder {
  std::int64_t num_rows = 0;   ///< rows that are in pairs
  std::int64_t num_extra = 0;  ///< rows that are in none
  std::int32_t num_operators = 0;
  PairOperator operators[4] = {};

  FSKNN_HD std::int64_t pairs() const { return num_rows * (num_rows - 1) / 2; }
  FSKNN_HD std::int64_t size() const {
    return num_rows + num_operators * pairs() + num_extra;
  }
  FSKNN_HD MadeOf at(std::int64_t point) const {
    if (point < num_rows)
      return {static_cast<std::int32_t>(point), -1, PairOperator::minus};
    point -= num_rows;
    const std::int64_t of_operators = num_operators * pairs();
    if (point >= of_operators)
      return {static_cast<std::int32_t>(num_rows + point - of_operators), -1,
              PairOperator::minus};
    const std::int64_t pair = point % pairs();
    // Binary search for the i with pairs_before(i) <= pair < pairs_before(i +
    // 1).
    std::int64_t low = 0, high = num_rows - 1;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (pairs_before(middle, num_rows) <= pair)
        low = middle;
      else
        high = middle;
    }
    return {
        static_cast<std::int32_t>(low),
        static_cast<std::int32_t>(low + 1 + pair - pairs_before(low, num_rows)),
        operators[point / pairs()]};
  }
};

/// Metafeatures as a source of rows. It holds the small matrix, and computes a
/// row when it is read.
class MetafeatureSource final : public MadeSource {
 public:
  /// small: [num_rows + num_extra x features], copied. kept: the numbers of the
  /// metafeatures that are points, in any order (null: all, in order).
  MetafeatureSource(const RowSource& small, const MetafeatureOrder& order,
                    const std::vector<std::int32_t>* kept = nullptr);

  std::int64_t num_points() const override {
    return whole_ ? order_.size() : static_cast<std::int64_t>(kept_.size());
  }
  std::int64_t num_features() const override { return num_features_; }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;
  double bytes_to_make() const override {
    return 8 * static_cast<double>(small_rows() * small_stride());
  }

  // The inputs from which a device computes the same rows.

  /// [small_rows() x small_stride()], row-major, padded with zeros.
  const double* small() const { return small_.data(); }
  std::int64_t small_rows() const { return order_.num_rows + order_.num_extra; }
  std::int64_t small_stride() const { return stride_; }
  const MetafeatureOrder& order() const { return order_; }
  /// [num_points()] the metafeature of each point; null: its own number.
  const std::int32_t* kept() const override {
    return whole_ ? nullptr : kept_.data();
  }
  /// The rows that a point is made from.
  MadeOf made_of(std::int64_t point) const {
    return order_.at(whole_ ? point : kept_[static_cast<std::size_t>(point)]);
  }

 private:
  void make(MadeOf made, double* out) const;

  std::int64_t num_features_, stride_;
  MetafeatureOrder order_;
  bool whole_;
  std::vector<std::int32_t> kept_;
  Buffer<double> small_;
};

}  // namespace fsknn
