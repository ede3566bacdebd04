#include "cpu/filter/bin_table.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/errors.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/thresholds.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The square of the factor of rows of length 1 (whole_products.cpp).
constexpr double kUnitSquare = 32767.0 * 32767.0;

bool is_similarity(Test test) {
  return test == Test::similarity || test == Test::absolute_similarity ||
         test == Test::negative_similarity;
}

/// The range of slots for the values of all r from `low` to `high`. The value
/// is monotone on either side of 0.
struct Slots {
  std::size_t first, last;
};
Slots slots_between(const PairBins& bins, const PairValue& value, double low,
                    double high) {
  const double a = value.of_product(low), b = value.of_product(high);
  double least = std::min(a, b), most = std::max(a, b);
  if (low < 0.0 && high > 0.0) {
    const double middle = value.of_product(0.0);
    least = std::min(least, middle);
    most = std::max(most, middle);
  }
  return {bins.slot(least), bins.slot(most)};
}

}  // namespace

BinTable::BinTable(const PairBins& bins, const PairValue& value,
                   const FilterTerms& terms, const FilterRows& rows) {
  const FilterForm& form = *terms.scale.form;
  if (bins.extremes || !form.usable(terms.scale)) return;
  if (is_similarity(form.test))
    fill_similarities(bins, value, terms.scale.slack);
  else if (form.test == Test::squared_distance && !bins.similarity)
    fill_squares(bins, terms, rows);
  else if (form.product == Product::common_bits &&
           form.test == Test::sum_distance)
    fill_whole_numbers(bins, value, terms, rows);
}

/// For rows of bits the filter's sums are the contract's, and few are possible.
void BinTable::fill_whole_numbers(const PairBins& bins, const PairValue& value,
                                  const FilterTerms& terms,
                                  const FilterRows& rows) {
  kind_ = Kind::whole;
  const std::int32_t* const first = rows.first.data();
  const std::int32_t largest =
      rows.num_places > 0 ? *std::max_element(first, first + rows.num_places)
                          : 0;
  for (std::int32_t sum = 0; sum <= 2 * largest; ++sum) {
    const double distance = terms.rule(sum, 0.0, 0.0);
    // No pair may have this sum; if one has, the exact step decides.
    least_.push_back(is_in_range(distance)
                         ? static_cast<std::int32_t>(bins.slot(value(distance)))
                         : kUnsure);
  }
}

void BinTable::of_whole_numbers(const std::int32_t* sums,
                                const FilterRows& rows, std::int64_t place,
                                std::int64_t column, std::int64_t count,
                                std::int32_t* slots) const {
  const std::int32_t own = rows.first[place];
  const std::int32_t* const first = rows.first.data() + column;
  for (std::int64_t c = 0; c < count; ++c)
    slots[c] = least_[static_cast<std::size_t>(own + first[c] - 2 * sums[c])];
}

void BinTable::fill_similarities(const PairBins& bins, const PairValue& value,
                                 double slack) {
  kind_ = Kind::similarity;
  least_.assign(kSumCells, kUnsure);
  std::int32_t within = 0, sure = 0;
  for (std::int32_t cell = 0; cell < kSumCells; ++cell) {
    const double width = std::int32_t{1} << kSumBits;
    const double first = (cell - kSumCells / 2) * width;
    const Slots slots =
        slots_between(bins, value, first / kUnitSquare - slack,
                      (first + (width - 1.0)) / kUnitSquare + slack);
    if (slots.first == slots.last)
      least_[static_cast<std::size_t>(cell)] =
          static_cast<std::int32_t>(slots.first);
    if (std::fabs(first) > kUnitSquare) continue;
    ++within;
    sure += slots.first == slots.last;
  }
  // If bins are narrower than the bound, the exact step computes all pairs.
  if (2 * sure < within) kind_ = Kind::none;
}

void BinTable::fill_squares(const PairBins& bins, const FilterTerms& terms,
                            const FilterRows& rows) {
  kind_ = Kind::square;
  float largest = 0.0f;
  // Rows that were clipped have no upper bound.
  for (std::int64_t p = 0; p < rows.num_places; ++p) {
    const float upper = as_float(rows.second_upper[p]);
    if (upper < kFloatInfinity) largest = std::max(largest, upper);
  }
  // No lower or upper bound exceeds 4 times the largest.
  first_ = (as_bits(4.0f * largest) >> kFloatBits) - (kFloatCells - 2);
  first_ = std::max(first_, 1);

  const Thresholds thresholds(terms.scale, terms.metric, terms.rule);
  // A pair whose lower bound exceeds past[b] is beyond break b.
  std::vector<float> past;
  for (std::size_t b = 0; b < bins.breaks.size(); ++b) {
    const double at = bins.breaks[b];
    const bool is_last = b + 1 == bins.breaks.size();
    // No distance is below 0, and a distance that equals the last break is not
    // beyond it.
    const bool always = at < 0.0 || (at == 0.0 && !is_last);
    past.push_back(always ? -kFloatInfinity
                          : as_float(thresholds.keep_up_to(at)));
  }
  const std::int32_t no_row = as_bits(0.0f);
  const Side side = {nullptr, &no_row, &no_row};
  least_.resize(kFloatCells);
  last_.resize(kFloatCells);
  for (std::int32_t cell = 0; cell < kFloatCells; ++cell) {
    const std::size_t at = static_cast<std::size_t>(cell);
    const bool is_top = cell == kFloatCells - 1;
    const std::int32_t run = (first_ + cell - 1) << kFloatBits;
    const float low = as_float(run);
    const float high = as_float(run + ((1 << kFloatBits) - 1));
    std::int32_t least = 0;
    for (const float t : past)
      least += t == -kFloatInfinity || (cell > 0 && low > t);
    least_[at] = least;
    const double most =
        is_top ? kInfinity : thresholds.upper_distance(high, side);
    // Where a distance may exceed the range of a double, the exact step
    // decides.
    last_[at] = is_in_range(most) ? static_cast<std::int32_t>(bins.slot(most))
                                  : kUnsure;
  }
}

/// Cell 0 holds everything below the first run, including 0 and negative
/// values.
std::int32_t BinTable::cell_of(float square) const {
  const std::int32_t cell = (as_bits(square) >> kFloatBits) - first_ + 1;
  return std::min(std::max(cell, 0), kFloatCells - 1);
}

void BinTable::of_squares(const std::int32_t* sums, const FilterRows& rows,
                          std::int64_t place, std::int64_t column,
                          std::int64_t count, std::int32_t* slots) const {
  const float a = 2.0f * as_float(rows.first[place]);
  const float low = as_float(rows.second[place]);
  const float high = as_float(rows.second_upper[place]);
  const std::int32_t* const first = rows.first.data() + column;
  const std::int32_t* const second = rows.second.data() + column;
  const std::int32_t* const upper = rows.second_upper.data() + column;
  for (std::int64_t c = 0; c < count; ++c) {
    const float product = a * as_float(first[c]) * static_cast<float>(sums[c]);
    const std::int32_t least = least_[static_cast<std::size_t>(
        cell_of(low + as_float(second[c]) - product))];
    const std::int32_t last = last_[static_cast<std::size_t>(
        cell_of(high + as_float(upper[c]) - product))];
    slots[c] = least == last ? least : kUnsure;
  }
}

}  // namespace cpu
}  // namespace fsknn
