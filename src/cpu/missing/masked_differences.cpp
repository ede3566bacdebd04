// The filter of squared differences over common samples (masked_filter.hpp,
// "Squared differences").

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/kernels.hpp"
#include "cpu/missing/masked_filter.hpp"
#include "cpu/missing/masked_rounding.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
// All rounding except that of v' and of the sums over lists is below this part
// of |v|^2. Underflow is below kTiny.
constexpr double kRounding = 4e-6;
constexpr double kTiny = 1e-30;
// Rows with |v| above the first value or below the second bypass the filter:
// squares beyond it do not fit in floats.
constexpr double kLongest = 0x1p20, kShortest = 0x1p-60;

/// The features that a row lacks, or has if these are fewer.
struct RowList {
  RowList(const MaskedFilterRows& rows, std::int64_t place) {
    const std::size_t at = static_cast<std::size_t>(place);
    first = rows.list.data() + rows.list_start[at];
    last = rows.list.data() + rows.list_start[at + 1];
    is_known = rows.lists_known[at] != 0;
  }
  /// Another row's sum of z^2 over the features that this row has.
  double square(const MaskedFilterRows& of, std::int64_t place) const {
    const float* z = of.z_panel(place) + place % Tile::panel;
    double sum = 0.0;
    for (const std::int32_t* f = first; f != last; ++f) {
      const double value = z[*f * Tile::panel];
      sum += value * value;
    }
    return is_known ? sum : of.square[place] - sum;
  }

  const std::int32_t *first, *last;
  bool is_known;
};

/// Step 2 of one row's pairs. Values that depend only on the row are computed
/// once.
class RowOfPairs {
 public:
  RowOfPairs(const MaskedFilterRows& rows, std::int64_t row,
             const MaskedFilterRows& columns, std::int64_t min_pairs,
             float threshold)
      : rows_(rows),
        columns_(columns),
        row_(row),
        min_pairs_(min_pairs),
        known_(static_cast<double>(rows.points->known[row])),
        limit_(-static_cast<double>(threshold) / known_),
        square_(rows.square[row]),
        scale_(static_cast<double>(rows.scale[row])),
        column_margin_(rows.margin + rows.list_error[row]) {}

  /// sum: the whole product. x, y: the sums of squares of the row and of the
  /// column.
  bool may_be_close(std::int64_t column, std::int32_t sum, double x, double y,
                    float threshold) const {
    const double product =
        scale_ * static_cast<double>(columns_.scale[column]) * sum;
    const double least =
        x + y - 2.0 * product -
        (rows_.margin + columns_.list_error[column]) * square_ -
        column_margin_ * columns_.square[column] - kTiny;
    const double known = static_cast<double>(columns_.points->known[column]);
    const double far = -static_cast<double>(threshold);
    // NaN, where a row bypasses the filter or has no value, gives false.
    const auto beyond = [&](double n) {
      return least > limit_ * n && least * known > far * n;
    };
    // The common samples are at most the samples of either row.
    if (beyond(std::min(known_, known) * (1.0 + 1e-12))) return false;
    const std::int64_t common =
        masked_common(rows_, columns_, {row_, column, 0, 0, 0, 0, 0});
    return common >= min_pairs_ &&
           !beyond(static_cast<double>(common) * (1.0 + 1e-12));
  }

 private:
  const MaskedFilterRows& rows_;
  const MaskedFilterRows& columns_;
  const std::int64_t row_, min_pairs_;
  const double known_, limit_, square_, scale_, column_margin_;
};

}  // namespace

double masked_difference_margin(std::int64_t num_features) {
  const double r = std::sqrt(static_cast<double>(num_features)) /
                   (2.0 * kMaskedUnit) * (1.0 + 1e-6);
  return 2.0 * r + r * r + kRounding;
}

MaskedDifferencePacker::MaskedDifferencePacker(MaskedFilterRows& to,
                                               const MaskedPacking& packing)
    : to_(to),
      classes_(packing.classes),
      units_(*packing.units),
      v_(static_cast<std::size_t>(to.points->num_features)) {}

void MaskedDifferencePacker::operator()(std::int64_t place) {
  const std::int64_t d = to_.points->num_features;
  const double* row = to_.points->row(Place{place});
  float* z = to_.z.data() + place / 16 * 16 * d + place % 16;
  double length = 0.0;
  for (std::int64_t f = 0; f < d; ++f) {
    const std::size_t at = static_cast<std::size_t>(f);
    v_[at] = has_value(row[f]) ? units_(row[f] - units_.centre[at]) : 0.0;
    length += v_[at] * v_[at];
  }
  length = std::sqrt(length);
  to_.sum[place] = 0.0;
  to_.missing[place] = static_cast<float>(d - to_.points->known[place]);
  // The condition is also true for NaN.
  if (!(length <= kLongest) || (length > 0.0 && length < kShortest)) {
    to_.square[place] = std::numeric_limits<double>::infinity();
    to_.square_below[place] = -kInfinite;
    for (std::size_t c = 0; c < classes_.most.size(); ++c)
      to_.w[static_cast<std::int64_t>(c) * to_.num_places + place] = -kInfinite;
    return;
  }
  double square = 0.0;
  for (std::int64_t f = 0; f < d; ++f) {
    const float value = static_cast<float>(v_[static_cast<std::size_t>(f)]);
    z[f * 16] = value;
    square += static_cast<double>(value) * value;
  }
  to_.square[place] = square;
  pack(place, length);
  bounds(place, square);
}

void MaskedDifferencePacker::pack(std::int64_t place, double length) {
  to_.scale[place] = length > 0.0 ? rounded_up(length / kMaskedUnit) : 0.0f;
  if (!(length > 0.0)) return;
  const double scale = to_.scale[place];
  std::int32_t* packed =
      to_.packed.data() + place / 16 * 16 * to_.steps + place % 16;
  for (std::size_t f = 0; f < v_.size(); ++f)
    put_masked(packed, f, std::nearbyint(v_[f] / scale));
}

void MaskedDifferencePacker::bounds(std::int64_t place, double square) {
  for (double& v : v_) v *= v;
  to_.square_below[place] = rounded_down(square * (1.0 - to_.margin) - kTiny);
  to_.minus_largest[place] =
      -rounded_up(*std::max_element(v_.begin(), v_.end()) * (1.0 + 1e-6));
  const auto upto = [&](std::int32_t most) {
    return std::min(v_.size(), static_cast<std::size_t>(most));
  };
  std::partial_sort(
      v_.begin(),
      v_.begin() + static_cast<std::ptrdiff_t>(upto(classes_.most.back())),
      v_.end(), [](double a, double b) { return a > b; });
  double lost = 0.0;
  std::size_t at = 0;
  for (std::size_t c = 0; c < classes_.most.size(); ++c) {
    for (; at < upto(classes_.most[c]); ++at) lost += v_[at];
    to_.w[static_cast<std::int64_t>(c) * to_.num_places + place] = rounded_down(
        square * (1.0 - to_.margin) - lost * (1.0 + 1e-12) - kTiny);
  }
}

double masked_difference_error(std::int64_t length) {
  return (static_cast<double>(length) + 8.0) * 1.01 * 0x1p-24;
}

float masked_difference_threshold(double distance, const MaskedRule& rule,
                                  const MaskedUnits& units, double known) {
  const double far = units(rule.distances().before_scaling(distance));
  const double sum =
      far * far * (known / rule.terms().num_features) * (1.0 + 1e-6) + kTiny;
  // Infinity times 0 is NaN, for which everything passes.
  return sum < static_cast<double>(std::numeric_limits<float>::max())
             ? -rounded_up(sum)
             : -kInfinite;
}

bool may_be_close(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                  const MaskedPair& pair, std::int64_t min_pairs,
                  float row_threshold, float column_threshold) {
  return RowOfPairs(rows, pair.row, columns, min_pairs, row_threshold)
      .may_be_close(pair.column, pair.sum, static_cast<double>(pair.x),
                    static_cast<double>(pair.y), column_threshold);
}

std::uint64_t close_by_lists(const MaskedFilterRows& rows, std::int64_t row,
                             const MaskedFilterRows& columns,
                             std::int64_t column0, const std::int32_t* sums,
                             std::uint64_t keep, std::int64_t min_pairs,
                             float row_threshold,
                             const float* column_threshold) {
  const RowOfPairs pairs(rows, row, columns, min_pairs, row_threshold);
  const RowList own(rows, row);
  for (std::uint64_t mask = keep; mask != 0; mask &= mask - 1) {
    const int c = __builtin_ctzll(mask);
    const std::int64_t column = column0 + c;
    if (!pairs.may_be_close(column, sums[c],
                            RowList(columns, column).square(rows, row),
                            own.square(columns, column), column_threshold[c]))
      keep &= ~(std::uint64_t{1} << c);
  }
  return keep;
}

}  // namespace cpu
}  // namespace fsknn
