#pragma once

// A filter's form: the numbers of packed rows, the test of their sums, and the
// bound that is proved for it, in one entry. Another precision is another entry
// (and a kernel for its products), in its own file in this folder.
// choose_scale() chooses the form.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/buffer.hpp"
#include "core/base/filter_numbers.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

struct FilterForm;

/// The purpose of the filter.
struct FilterUse {
  std::int64_t k = 0;  ///< neighbours of a list; 0: all within a distance
  int bits = 0;        ///< of whole numbers, if such a form exists; 0: chosen
  double share = 1.0;  ///< estimated share of pairs that it will test
  /// Whether rows of length 1 may be centred. If not, sums determine
  /// similarities.
  bool centred = true;
};

/// The properties that all rows of one search share.
struct FilterScale {
  const FilterForm* form = nullptr;
  double unit = 1.0;         ///< the value of 1, except for rows of length 1
  std::int32_t largest = 0;  ///< bound on the whole numbers of a row
  /// The largest entry, less its column's centre, for which the unit was
  /// chosen.
  double reach = HUGE_VAL;
  Buffer<double> centre;  ///< [padded], subtracted from every row; or empty
  /// The typical change of a centred row by rounding, relative to its length.
  double part = 1.0;
  double slack = 0.0;        ///< relative, or absolute for similarities
  bool whole_ranks = false;  ///< rows are whole ranks, scaled to length 1
  TableTerms table;          ///< of tables of alleles

  inline bool has_filter() const;
  inline FilterNumbers numbers() const;
};

/// Rows in the filter's form, with the numbers that the test reads for each.
struct FilterRows {
  std::int64_t num_places = 0;  ///< whole panels; rows beyond size() are 0
  std::int64_t steps = 0;       ///< steps of 32 bits in a row
  Product product = Product::dot;
  Buffer<std::int32_t> panels;  ///< [num_places / 16][steps][16], see Tile
  Buffer<std::int32_t> first;   ///< [num_places], see Test
  Buffer<std::int32_t> second;
  Buffer<std::int32_t> third;        ///< Test::table only; or empty
  Buffer<std::int32_t> first_upper;  ///< the same for upper bounds
  Buffer<std::int32_t> second_upper;
  /// Replaces second_upper where a bound on the distance need only be likely;
  /// empty: no tighter bound exists.
  Buffer<std::int32_t> second_likely;
  /// The rows in 16 bits, [num_places x words_wide], for forms whose hits are
  /// tested again; and the distance between each row and its words.
  Buffer<std::int16_t> words;
  Buffer<float> words_error;
  std::int64_t words_wide = 0;
  Buffer<float> square;  ///< [num_places], for forms that need errors
  double error = 0.0;    ///< largest relative rounding error of a row

  double bytes() const {
    double sum = 2.0 * static_cast<double>(words.size());
    for (const Buffer<std::int32_t>* numbers :
         {&panels, &first, &second, &third, &first_upper, &second_upper,
          &second_likely})
      sum += 4.0 * static_cast<double>(numbers->size());
    for (const Buffer<float>* numbers : {&words_error, &square})
      sum += 4.0 * static_cast<double>(numbers->size());
    return sum;
  }
  const std::int32_t* panel(std::int64_t place) const {
    return panels.data() + place / Tile::panel * steps * Tile::panel;
  }
  /// The position of step f of a row.
  std::int64_t at(std::int64_t place, std::int64_t f) const {
    return place / Tile::panel * steps * Tile::panel +
           step_at(product, f, static_cast<int>(place % Tile::panel));
  }
  /// The row at `place` within its panel; whole micro-tiles start there.
  const std::int32_t* row(std::int64_t place) const {
    return panel(place) + place % Tile::panel;
  }
  Side side(const std::int32_t* threshold, std::int64_t place) const {
    return {threshold, first.data() + place, second.data() + place,
            third_at(place)};
  }
  Side upper_side(std::int64_t place) const {
    return {nullptr, first_upper.data() + place, second_upper.data() + place,
            third_at(place)};
  }
  Side likely_side(std::int64_t place) const {
    if (second_likely.size() == 0) return upper_side(place);
    return {nullptr, first_upper.data() + place, second_likely.data() + place,
            third_at(place)};
  }
  const std::int32_t* third_at(std::int64_t place) const {
    return third.size() == 0 ? nullptr : third.data() + place;
  }
};

/// The inputs of a form's bounds.
struct FilterTerms {
  const FilterScale& scale;
  const MetricEntry& metric;
  const DistanceRule& rule;
};

class RowPacker;

struct FilterForm {
  Test test;
  Product product;
  /// none: there is no filter, and no row is packed.
  FilterNumbers numbers;
  /// Whether the slack depends on the rows' errors, which are known after
  /// packing.
  bool needs_errors;
  /// The thresholds at which every pair passes, and at which this side lets no
  /// pair pass.
  std::int32_t keep_all, keep_none;

  /// Whether such numbers can distinguish the rows at all; if not, every pair
  /// goes to the exact step.
  bool (*usable)(const FilterScale& scale);
  /// Packs a loaded row: its steps, and its numbers at `place`. Raises error to
  /// the row's own, if that is larger.
  void (*pack_row)(RowPacker& packer, FilterRows& rows, double row_sum,
                   std::int64_t place, double* error);
  /// The common slack, from the largest error of a row.
  double (*slack)(double error, std::int64_t padded);
  /// Fills the rows' numbers that depend on the slack.
  void (*complete)(double slack, FilterRows& rows);
  /// The threshold at which no pair within `distance` (finite) fails the test.
  std::int32_t (*keep_up_to)(const FilterTerms& terms, double distance);
  /// The largest difference of the points' keys (cpu/search/keys.hpp) at which
  /// a pair may pass this threshold; null: there is no bound. For rows of
  /// length 1: sqrt(2 t) for the distance t of the pair. Looser thresholds have
  /// no smaller reach.
  double (*reach)(const FilterScale& scale, std::int32_t threshold);
  /// An upper bound on the returned distance of pairs whose upper_key was at
  /// most `key` (finite), for the row with these numbers.
  double (*upper_distance)(const FilterTerms& terms, double key,
                           const Side& row);
  /// The contract's sum of two rows, from the filter's. null: the filter's sum
  /// does not determine it, and the exact step computes it.
  double (*exact_sum)(std::int32_t sum, const Side& row, const Side& column);
  /// Packs the same row in 16 bits (second_test.hpp). null: a pair that passes
  /// the test goes straight to the exact step.
  void (*pack_words)(RowPacker& packer, FilterRows& rows,
                     std::int64_t place) = nullptr;

  /// The number of features in the 32 bits of a step, if there is a filter.
  int features_per_step() const { return 32 / bits_of(numbers); }
};

/// The loosest of some thresholds.
inline std::int32_t loosest(const FilterForm& form,
                            const std::int32_t* threshold, std::int64_t count) {
  // Floats in the order of whole numbers; one that keeps no pair is infinite.
  const std::int32_t none = form.keep_none & 0x7fffffff;
  const std::int32_t flipped = none == 0x7f800000 ? 0x7fffffff : 0;
  const auto ordered = [=](std::int32_t t) { return t ^ (t >> 31 & flipped); };
  std::int32_t least = ordered(threshold[0]), most = least;
  for (std::int64_t p = 1; p < count; ++p) {
    least = std::min(least, ordered(threshold[p]));
    most = std::max(most, ordered(threshold[p]));
  }
  return ordered(form.keep_all < form.keep_none ? least : most);
}

inline bool FilterScale::has_filter() const {
  return form->numbers != FilterNumbers::none;
}

inline FilterNumbers FilterScale::numbers() const { return form->numbers; }

// no_filter.cpp: FilterKind::none.
extern const FilterForm kNoFilter;

// whole_products.cpp: products of whole numbers of 16 bits.
extern const FilterForm kWholeSimilarity, kWholeAbsoluteSimilarity,
    kWholeNegativeSimilarity, kWholeSquaredDistance, kWholeProduct;

// byte_products.cpp: products of rows of length 1 in whole numbers of 8 bits,
// with a unit for each row.
extern const FilterForm kByteSimilarity, kByteAbsoluteSimilarity,
    kByteNegativeSimilarity;

// centred_products.cpp: products of nearly equal rows of length 1, less a
// centre, with a unit for each row.
extern const FilterForm kCentredSimilarity, kCentredNegativeSimilarity,
    kCentredByteSimilarity, kCentredByteNegativeSimilarity;

/// Finds a centre of rows of length 1 from which most sampled rows differ
/// little; empty if there is none.
Buffer<double> centre_of_near_rows(const PreparedPoints& points);
/// Estimates FilterScale::part from a sample, for a scale with a form and a
/// centre.
double part_of_error(const FilterScale& scale, const PreparedPoints& points);

// byte_differences.cpp: differences of whole numbers of 8 bits, in one unit for
// the whole matrix. A larger entry is clipped and widens its row's bound.
extern const FilterForm kByteDistance, kByteProportion;

// whole_elementwise.cpp: sums of minima, and largest differences, of whole
// numbers of 16 bits, in one unit for the whole matrix.
extern const FilterForm kWholeSumDistance, kWholeLargestDifference,
    kWholeOverlap;

// float_elementwise.cpp: the same in floats.
extern const FilterForm kFloatSumDistance, kFloatLargestDifference,
    kFloatOverlap;

// bits.cpp: sums and differences of rows of 0 and 1, without any rounding.
extern const FilterForm kBitsOverlap, kBitsDistance, kBitsSquaredDistance;

// tables.cpp: tables of alleles, from products of whole numbers of 16 or 8
// bits.
extern const FilterForm kTable, kByteTable;

// two_values.cpp: rows of length 1 with two values each, in bits, not centred
// and centred.
extern const FilterForm kTwoValues, kCentredTwoValues,
    kCentredTwoValuesAbsolute, kCentredTwoValuesNegative;

}  // namespace cpu
}  // namespace fsknn
