#pragma once

// A filter's form: the numbers that rows are packed in, the test that sums of
// them are put to, and the proof's bound, all in one entry. Another precision
// is another entry (and a kernel for its products), in a file of its own beside
// those of this folder; choose_scale() is where it is chosen.

#include <cmath>
#include <cstdint>

#include "core/base/buffer.hpp"
#include "core/base/filter_numbers.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

struct FilterForm;

/// What the filter is for.
struct FilterUse {
  std::int64_t k = 0;  ///< of lists of nearest; 0: all within a distance
  int bits = 0;  ///< of whole numbers, where there is such a form; 0: chosen
  double share = 1.0;  ///< of all pairs, roughly, that it will look at
  /// Rows of length 1 may be centred; if not, sums tell their similarity.
  bool centred = true;
};

/// What the rows of one search have in common.
struct FilterScale {
  const FilterForm* form = nullptr;
  double unit = 1.0;         ///< what 1 stands for, but for rows of length 1
  std::int32_t largest = 0;  ///< no whole number of a row is beyond
  /// The largest entry, less its column's centre, that the unit is made for.
  double reach = HUGE_VAL;
  Buffer<double> centre;  ///< [padded] taken off every row; may be empty
  /// Of a centred row's length, what rounding changes in a typical one.
  double part = 1.0;
  double slack = 0.0;        ///< relative, or absolute for similarities
  bool whole_ranks = false;  ///< rows were brought to length 1 from these

  inline bool has_filter() const;
  inline FilterNumbers numbers() const;
};

/// Rows in the filter's form, and what the test needs to know of each.
struct FilterRows {
  std::int64_t num_places = 0;  ///< whole panels; rows beyond size() are 0
  std::int64_t steps = 0;       ///< of 32 bits a row
  Product product = Product::dot;
  Buffer<std::int32_t> panels;  ///< [num_places / 16][steps][16], see Tile
  Buffer<std::int32_t> first;   ///< [num_places], see Test
  Buffer<std::int32_t> second;
  Buffer<std::int32_t> first_upper;  ///< the same for upper bounds
  Buffer<std::int32_t> second_upper;
  /// In place of second_upper where a distance need only be likely to be no
  /// larger; empty: there is nothing tighter.
  Buffer<std::int32_t> second_likely;
  /// In 16 bits, too, of forms whose hits are looked at again: [num_places x
  /// words_wide], and how far each row is from them.
  Buffer<std::int16_t> words;
  Buffer<float> words_error;
  std::int64_t words_wide = 0;
  Buffer<float> square;  ///< [num_places] of forms that need errors
  double error = 0.0;    ///< largest relative rounding of a row

  const std::int32_t* panel(std::int64_t place) const {
    return panels.data() + place / Tile::panel * steps * Tile::panel;
  }
  /// Where step f of a row stands.
  std::int64_t at(std::int64_t place, std::int64_t f) const {
    return place / Tile::panel * steps * Tile::panel +
           step_at(product, f, static_cast<int>(place % Tile::panel));
  }
  /// The row at `place` within its panel; whole micro-tiles start there.
  const std::int32_t* row(std::int64_t place) const {
    return panel(place) + place % Tile::panel;
  }
  Side side(const std::int32_t* threshold, std::int64_t place) const {
    return {threshold, first.data() + place, second.data() + place};
  }
  Side upper_side(std::int64_t place) const {
    return {nullptr, first_upper.data() + place, second_upper.data() + place};
  }
  Side likely_side(std::int64_t place) const {
    if (second_likely.size() == 0) return upper_side(place);
    return {nullptr, first_upper.data() + place, second_likely.data() + place};
  }
};

/// What a form's bounds are made of.
struct FilterTerms {
  const FilterScale& scale;
  const MetricEntry& metric;
  const DistanceRule& rule;
};

class RowPacker;

struct FilterForm {
  Test test;
  Product product;
  /// None: there is no filter, and no row is packed.
  FilterNumbers numbers;
  /// The slack is made of the rows' errors, which packing them tells.
  bool needs_errors;
  /// Thresholds: every pair passes; this side lets no pair pass.
  std::int32_t keep_all, keep_none;

  /// Whether such numbers can hold the rows apart at all; if not, every pair
  /// goes to the exact step.
  bool (*usable)(const FilterScale& scale);
  /// One row, loaded: its steps, and its numbers at `place`. error: raised to
  /// the row's own.
  void (*pack_row)(RowPacker& packer, FilterRows& rows, double row_sum,
                   std::int64_t place, double* error);
  /// The common slack, of the largest error of a row.
  double (*slack)(double error, std::int64_t padded);
  /// What of the rows' numbers waits for the slack.
  void (*complete)(double slack, FilterRows& rows);
  /// The threshold at which no pair at most `distance` apart, which is finite,
  /// fails the test.
  std::int32_t (*keep_up_to)(const FilterTerms& terms, double distance);
  /// How far apart, as the points' keys have it (cpu/search/keys.hpp), a pair
  /// may be that passes this threshold; null: no key says so.
  double (*reach)(const FilterScale& scale, std::int32_t threshold);
  /// A returned distance that no pair exceeds whose upper_key was at most
  /// `key`, which is finite, for the row with these numbers.
  double (*upper_distance)(const FilterTerms& terms, double key,
                           const Side& row);
  /// The contract's sum of two rows, of the filter's; null: the filter's does
  /// not tell it, and the exact step makes it.
  double (*exact_sum)(std::int32_t sum, const Side& row, const Side& column);
  /// The same row in 16 bits (second_look.hpp); null: no pair that passes the
  /// test is looked at again before the exact step.
  void (*pack_words)(RowPacker& packer, FilterRows& rows,
                     std::int64_t place) = nullptr;

  /// In the 32 bits of a step, where there is a filter.
  int features_per_step() const { return 32 / bits_of(numbers); }
};

inline bool FilterScale::has_filter() const {
  return form->numbers != FilterNumbers::none;
}

inline FilterNumbers FilterScale::numbers() const { return form->numbers; }

// no_filter.cpp: FilterKind::none.
extern const FilterForm kNoFilter;

// whole_products.cpp: products of whole numbers of 16 bits.
extern const FilterForm kWholeSimilarity, kWholeAbsoluteSimilarity,
    kWholeNegativeSimilarity, kWholeSquaredDistance, kWholeProduct;

// byte_products.cpp: the same of rows of length 1 in whole numbers of 8 bits,
// each row in a unit of its own.
extern const FilterForm kByteSimilarity, kByteAbsoluteSimilarity,
    kByteNegativeSimilarity;

// centred_products.cpp: of rows of length 1 that are nearly the same, what is
// left of them beside a centre, each in a unit of its own.
extern const FilterForm kCentredSimilarity, kCentredNegativeSimilarity,
    kCentredByteSimilarity, kCentredByteNegativeSimilarity;

/// A centre of rows of length 1 beside which most of a sample are short; empty
/// where there is none.
Buffer<double> centre_of_near_rows(const PreparedPoints& points);
/// FilterScale::part of a scale that has a form and a centre, from a sample.
double part_of_error(const FilterScale& scale, const PreparedPoints& points);

// byte_differences.cpp: differences of whole numbers of 8 bits, in one unit for
// the whole matrix, beyond which an entry is its row's matter alone.
extern const FilterForm kByteDistance, kByteProportion;

// whole_elementwise.cpp: sums of smaller ones, and largest differences, of
// whole numbers of 16 bits, in one unit for the whole matrix.
extern const FilterForm kWholeSumDistance, kWholeLargestDifference,
    kWholeOverlap;

// float_elementwise.cpp: the same of floats.
extern const FilterForm kFloatSumDistance, kFloatLargestDifference,
    kFloatOverlap;

// bits.cpp: sums and differences of rows of 0 and 1, without any rounding.
extern const FilterForm kBitsOverlap, kBitsDistance, kBitsSquaredDistance;

// two_values.cpp: rows of length 1 that have two values each, in bits: not
// centred, and centred.
extern const FilterForm kTwoValues, kCentredTwoValues,
    kCentredTwoValuesAbsolute, kCentredTwoValuesNegative;

}  // namespace cpu
}  // namespace fsknn
