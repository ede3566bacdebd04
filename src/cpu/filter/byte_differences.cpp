// Differences of rows in whole numbers of 8 bits, in one unit for the whole
// matrix. They take a third or half of the work of 16 bits, with a wider bound.
// Entries beyond the unit's range are clipped. Each row's loss by clipping and
// rounding is measured, and widens only its own bound. So the bound holds for
// any unit, and for rows outside the sample that set the unit.

#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/second_test.hpp"

namespace fsknn {
namespace cpu {
namespace {

// No larger value is subtracted from a sum of differences, which is below 2^29.
constexpr double kMostUnits = 1e30;
// A row's sum is at least this, so that every pair passes at kKeepAll. kKeepAll
// is finite, because rows that are not packed have the sum 0, and 0 times
// infinity is NaN.
constexpr double kLeastSum = 1e-20;
constexpr float kKeepAll = std::numeric_limits<float>::max();
constexpr std::int32_t kKeepAllBits = 0x7f7fffff;
// A bound on the rounding of a row's entries, in units.
constexpr double kRounding = 1e-3;

bool usable(const FilterScale& scale) {
  return scale.unit > 1e-290 && scale.unit < 1e290;
}

double slack(double, std::int64_t padded) { return rounding_of_sums(padded); }

std::int32_t as_threshold(double t) {
  return as_bits(std::min(float_up(t), kKeepAll));
}

/// second: g, the distance between the row and its whole numbers.
void pack_bytes(RowPacker& packer, FilterRows& rows, std::int64_t place) {
  const RowPacker::Residual r =
      packer.quantise<8>(1.0 / packer.scale.unit, packer.scale.largest);
  for (std::int64_t f = 0; f < packer.padded / 4; ++f)
    packer.step[f] ^= static_cast<std::int32_t>(0x80808080u);  // unsigned
  const double g = r.sizes * (1.0 + kFloatSlack) + kRounding;
  rows.second[place] = as_bits(float_up(std::min(g, kMostUnits)));
  rows.second_upper[place] = as_bits(float_up(g));  // may be infinity
  if (rows.second_likely.size() == 0) return;
  // Rounding mostly cancels. The difference of two rounded rows has a variance
  // of two twelfths for each feature. The likely bound of a pair is three
  // standard deviations, half from each row.
  rows.second_likely[place] = as_bits(float_up(std::min(
      g,
      r.beyond + 1.5 * std::sqrt(static_cast<double>(packer.padded) / 6.0))));
}

/// The words are whole numbers of parts of the unit.
void pack_words(RowPacker& packer, FilterRows& rows, std::int64_t place) {
  const double off = packer.quantise_words(
      1.0 / packer.scale.unit, kPartsOfUnit, largest_word(packer.padded),
      rows.words.data() + place * rows.words_wide);
  const double e = off / kPartsOfUnit * (1.0 + kFloatSlack) + kRounding;
  rows.words_error[place] = float_up(std::min(e, kMostUnits));
}

/// first: w = 1/2, so that the two rows' sum is 1.
struct Distance {
  static constexpr auto reach = &reach_in_units;

  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    pack_bytes(packer, rows, place);
    rows.first[place] = rows.first_upper[place] = as_bits(0.5f);
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    // No distance is below 0: a negative limit keeps nothing.
    if (t < 0.0) return terms.scale.form->keep_none;
    return as_threshold(t / terms.scale.unit *
                        (1.0 + terms.scale.slack + kFloatSlack));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    return terms.rule.after_scaling(terms.scale.unit * key *
                                    (1.0 + terms.scale.slack + kFloatSlack));
  }
};

/// first: w, the row's sum in units, rounded in the direction that the bound
/// needs.
struct Proportion {
  static double reach(const FilterScale&, std::int32_t threshold) {
    return static_cast<double>(as_float(threshold));
  }

  static void pack_row(RowPacker& packer, FilterRows& rows, double row_sum,
                       std::int64_t place, double*) {
    pack_bytes(packer, rows, place);
    const double w = std::min(row_sum / packer.scale.unit, kMostUnits);
    rows.first[place] = as_bits(float_up(std::max(w, kLeastSum)));
    rows.first_upper[place] = as_bits(float_down(w));
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    if (!(distance < 1.0)) return terms.scale.form->keep_all;
    // No distance is below 0, and least_overlap(-infinity) may be NaN.
    const double most =
        1.0 - terms.metric.least_overlap(std::max(distance, 0.0));
    return as_threshold(most + kFloatSlack + terms.scale.slack);
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    const double overlap =
        1.0 - key * (1.0 + kFloatSlack) - kFloatSlack - terms.scale.slack;
    return terms.metric.finish(0.5 * std::max(overlap, 0.0), 0.5, 0.5);
  }
};

template <class Measure>
constexpr FilterForm form() {
  return {Test::byte_difference,
          Product::byte_difference,
          FilterNumbers::int8,
          false,
          kKeepAllBits,
          kMinusInfinityBits,
          &usable,
          &Measure::pack_row,
          &slack,
          &nothing_waits,
          &Measure::keep_up_to,
          Measure::reach,
          &Measure::upper_distance,
          nullptr,
          &pack_words};
}

}  // namespace

const FilterForm kByteDistance = form<Distance>();
const FilterForm kByteProportion = form<Proportion>();

}  // namespace cpu
}  // namespace fsknn
