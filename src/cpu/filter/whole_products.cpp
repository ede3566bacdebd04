// Products of rows in whole numbers of 16 bits. Rows of length 1 have
// similarities as sums; rows of any length have a factor each.

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Rows of length 1 times this become whole numbers of 16 bits. The product of
// two is below 2^31, by Cauchy-Schwarz, if rounding adds less than 40%.
constexpr double kUnitScale = 32767.0;
// Rows shorter than this, in units of a typical row's length, count as 0.
constexpr double kTinyNorm = 1e-15;
constexpr double kTinySquare = 1e-22;
// Entries are clipped at this many units, so that squares fit in floats.
constexpr double kLargestEntry = 0x1p40;
// A bound on squares that underflow in the contract's sum, where the largest
// entry is at least 1.
constexpr double kVanished = 1e-300;

bool usable(const FilterScale& scale) { return scale.slack < 0.4; }

double error_of_products(double error) {
  const double e = error * (1.0 + 1e-6) + 1e-12;
  return 2.0 * e + e * e;
}

struct Similarity {
  static void pack_row(RowPacker& packer, FilterRows&, double, std::int64_t,
                       double* error) {
    const RowPacker::Residual r = packer.quantise(kUnitScale, kLargestWhole);
    *error = std::max(*error, std::sqrt(r.squares) / kUnitScale);
  }

  static double slack(double error, std::int64_t padded) {
    return error_of_products(error) + rounding_of_sums(padded);
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    const double sum =
        (1.0 - t - terms.scale.slack) * (kUnitScale * kUnitScale) - 2.0;
    if (sum < -2147483647.0) return terms.scale.form->keep_all;
    // No distance is below 0: a negative limit keeps nothing.
    if (sum > 2147483646.0) return terms.scale.form->keep_none;
    return static_cast<std::int32_t>(std::floor(sum));
  }

  static double reach(const FilterScale& scale, std::int32_t threshold) {
    if (threshold == scale.form->keep_all) return kInfinity;
    return reach_of_unit_rows(
        1.0 - static_cast<double>(threshold) / (kUnitScale * kUnitScale) -
        scale.slack);
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    const double similarity =
        -(key + std::fabs(key) * 1e-6) / (kUnitScale * kUnitScale);
    return 1.0 - similarity + terms.scale.slack;
  }

  static constexpr FilterForm form(Test test) {
    return {test,
            Product::dot,
            FilterNumbers::int16,
            true,
            std::numeric_limits<std::int32_t>::min(),
            std::numeric_limits<std::int32_t>::max(),
            &usable,
            &pack_row,
            &slack,
            &nothing_waits,
            &keep_up_to,
            &reach,
            &upper_distance,
            nullptr};
  }
};

/// Packs a row of any length in whole numbers, with its own factor. Returns the
/// factor, or 0 for a row shorter than `tiny`, which becomes zeros. square: of
/// its length. Raises error to the row's own, if that is larger.
float pack_by_length(RowPacker& packer, double tiny, double* square,
                     double* error) {
  double squares = 0.0, largest = 0.0;
  for (std::int64_t f = 0; f < packer.padded; ++f) {
    const double v = packer.value[f];
    squares += v * v;
    largest = std::max(largest, std::fabs(v));
  }
  *square = squares;
  const double norm = std::sqrt(squares);
  if (norm < tiny) {
    packer.clear();
    return 0.0f;
  }
  const float a = factor_of(norm, largest, kLargestWhole, packer.padded);
  const RowPacker::Residual r =
      packer.quantise(1.0 / static_cast<double>(a), kLargestWhole);
  *error =
      std::max(*error, std::sqrt(r.squares) * static_cast<double>(a) / norm);
  return a;
}

/// first: a, the row's factor (float). second: w, of the squared length.
struct SquaredDistance {
  // Clipping makes no distance larger, so that lower bounds stay valid. Clipped
  // rows have no upper bound; the sign of their square marks them.
  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double* error) {
    const double inverse = 1.0 / packer.scale.unit;  // a power of two
    double largest = 0.0;
    for (std::int64_t f = 0; f < packer.padded; ++f) {
      packer.value[f] *= inverse;
      largest = std::max(largest, std::fabs(packer.value[f]));
    }
    const bool cut = largest > kLargestEntry;
    for (std::int64_t f = 0; cut && f < packer.padded; ++f)
      packer.value[f] =
          std::min(std::max(packer.value[f], -kLargestEntry), kLargestEntry);
    double square;
    const float a = pack_by_length(packer, kTinyNorm, &square, error);
    if (!(a > 0.0f)) return;
    rows.first[place] = as_bits(a);
    rows.square[place] = static_cast<float>(cut ? -square : square);
  }

  static double slack(double error, std::int64_t padded) {
    return error_of_products(error) + kFloatSlack + rounding_of_sums(padded);
  }

  // |v_i . v_j - a_i a_j q_i . q_j| <= (2 e + e^2) |v_i| |v_j|, and the product
  // of two lengths is at most half the sum of their squares.
  static void complete(double slack, FilterRows& rows) {
    for (std::int64_t p = 0; p < rows.num_places; ++p) {
      const bool cut = rows.square[p] < 0.0f;
      const double square = std::fabs(rows.square[p]);
      rows.first_upper[p] = rows.first[p];
      rows.second_upper[p] =
          cut ? kInfinityBits : as_bits(float_up(square * (1.0 + slack)));
      rows.second[p] = as_bits(float_down(square * (1.0 - slack)));
    }
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance) / terms.scale.unit;
    const double square =
        t * t * (1.0 + terms.scale.slack) + tiny_square(terms.scale.unit);
    return as_bits(float_up(square * (1.0 + kFloatSlack)));
  }

  static double tiny_square(double unit) {
    return kTinySquare + kVanished / unit / unit;
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    const double w = as_float(row.second[0]);
    const double square = std::max(key + w, 0.0) + (w + std::fabs(key)) * 1e-6;
    return terms.rule.after_scaling(
        std::sqrt(square + tiny_square(terms.scale.unit)) *
        (1.0 + terms.scale.slack) * terms.scale.unit);
  }
};

/// first: a, the row's factor (float), in units of the scale. second: g, the
/// same for all rows: a bound on the error of the sum of two rows' whole
/// numbers, as |v_i| |v_j| <= a_i a_j kLargestNorm^2.
struct RawProduct {
  // Rows shorter than this count as 0: their products with the longest (2^57)
  // are less than kTinyProduct.
  static constexpr double kTinyRow = 0x1p-60;
  static constexpr double kTinyProduct = 0.25;

  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double* error) {
    const double inverse = 1.0 / packer.scale.unit;  // a power of two
    for (std::int64_t f = 0; f < packer.padded; ++f) packer.value[f] *= inverse;
    double square;
    rows.first[place] =
        as_bits(pack_by_length(packer, kTinyRow, &square, error));
  }

  static void complete(double slack, FilterRows& rows) {
    const float g = float_up(slack * (kLargestNorm * kLargestNorm));
    for (std::int64_t p = 0; p < rows.num_places; ++p) {
      rows.first_upper[p] = rows.first[p];
      rows.second[p] = rows.second_upper[p] = as_bits(g);
    }
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double unit = terms.scale.unit;
    const double t = terms.rule.before_scaling(distance) / unit / unit;
    const double less = t < 0.0 ? 1.0 - 0x1p-40 : 1.0 + 0x1p-40;
    return as_bits(float_down(-t * less - kTinyProduct));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    const double unit = terms.scale.unit;
    const double t = static_cast<double>(as_float(row.first[0])) * key;
    return terms.rule.after_scaling(
        (t + std::fabs(t) * 0x1p-40 + kTinyProduct) * unit * unit);
  }
};

}  // namespace

const FilterForm kWholeSimilarity = Similarity::form(Test::similarity);
const FilterForm kWholeAbsoluteSimilarity =
    Similarity::form(Test::absolute_similarity);
const FilterForm kWholeNegativeSimilarity =
    Similarity::form(Test::negative_similarity);
const FilterForm kWholeSquaredDistance = {Test::squared_distance,
                                          Product::dot,
                                          FilterNumbers::int16,
                                          true,
                                          kInfinityBits,
                                          kMinusInfinityBits,
                                          &usable,
                                          &SquaredDistance::pack_row,
                                          &SquaredDistance::slack,
                                          &SquaredDistance::complete,
                                          &SquaredDistance::keep_up_to,
                                          &reach_of_square,
                                          &SquaredDistance::upper_distance,
                                          nullptr};
const FilterForm kWholeProduct = {Test::product,
                                  Product::dot,
                                  FilterNumbers::int16,
                                  true,
                                  kMinusInfinityBits,
                                  kInfinityBits,
                                  &usable,
                                  &RawProduct::pack_row,
                                  &SquaredDistance::slack,
                                  &RawProduct::complete,
                                  &RawProduct::keep_up_to,
                                  nullptr,
                                  &RawProduct::upper_distance,
                                  nullptr};

}  // namespace cpu
}  // namespace fsknn
