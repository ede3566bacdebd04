// The filter of squared differences over common samples (masked_filter.hpp,
// "Squared differences").

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels.hpp"
#include "cpu/masked_filter.hpp"
#include "cpu/masked_rounding.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
// All that is rounded, but for v' and the sums over lists, is below this part
// of |v|^2; what underflows, below kTiny.
constexpr double kRounding = 4e-6;
constexpr double kTiny = 1e-30;
// |v| from which on, and below which, a row takes no part in the filter:
// beyond, squares are no floats.
constexpr double kLongest = 0x1p20, kShortest = 0x1p-60;

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
  // Also where it is no number.
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

float common_square(const MaskedFilterRows& of, std::int64_t place,
                    const MaskedFilterRows& others, std::int64_t other) {
  const std::size_t o = static_cast<std::size_t>(other);
  const float* z = of.z_panel(place) + place % Tile::panel;
  double sum = 0.0;
  for (std::int64_t at = others.list_start[o]; at < others.list_start[o + 1];
       ++at) {
    const double value =
        z[others.list[static_cast<std::size_t>(at)] * Tile::panel];
    sum += value * value;
  }
  return static_cast<float>(others.lists_known[o] ? sum
                                                  : of.square[place] - sum);
}

float masked_difference_threshold(double distance, const MaskedRule& rule,
                                  const MaskedUnits& units, double known) {
  const double far = units(rule.distances().before_scaling(distance));
  const double sum =
      far * far * (known / rule.terms().num_features) * (1.0 + 1e-6) + kTiny;
  // No number: of infinity times 0. Everything passes.
  return sum < static_cast<double>(std::numeric_limits<float>::max())
             ? -rounded_up(sum)
             : -kInfinite;
}

bool may_be_close(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                  const MaskedPair& pair, std::int64_t min_pairs,
                  float row_threshold, float column_threshold) {
  const double row_square = rows.square[pair.row];
  const double column_square = columns.square[pair.column];
  const double product = static_cast<double>(rows.scale[pair.row]) *
                         static_cast<double>(columns.scale[pair.column]) *
                         pair.sum;
  const double least =
      static_cast<double>(pair.x) + static_cast<double>(pair.y) -
      2.0 * product -
      (rows.margin + columns.list_error[pair.column]) * row_square -
      (rows.margin + rows.list_error[pair.row]) * column_square - kTiny;
  // No number where one of the two takes no part.
  const auto beyond = [&](double n) {
    return least > -static_cast<double>(row_threshold) * n /
                       static_cast<double>(rows.points->known[pair.row]) &&
           least > -static_cast<double>(column_threshold) * n /
                       static_cast<double>(columns.points->known[pair.column]);
  };
  // No more than either has are in common.
  if (beyond(static_cast<double>(std::min(rows.points->known[pair.row],
                                          columns.points->known[pair.column])) *
             (1.0 + 1e-12)))
    return false;
  const std::int64_t common = masked_common(rows, columns, pair);
  return common >= min_pairs &&
         !beyond(static_cast<double>(common) * (1.0 + 1e-12));
}

}  // namespace cpu
}  // namespace fsknn
