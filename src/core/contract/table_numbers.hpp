#pragma once

// Tables of alleles (allele_table.hpp) in the filters of CPUs and
// GPUs. Let Z = C^2 d be the number of pairs of alleles in a table, and let a
// row have n = C s counted alleles in pairs, and m = Z / 2 - n. With the sum of
// products P, the four entries are
//   P,  n_i - P,  n_j - P,  m_i + m_j + P.
// They are multiples of 1/2 below 2^23, and exact in floats. With p the
// parameter, the weight 1 - p f of an allele of the frequency f is (1 - p / 2)
// times G for the counted allele, and (1 - p / 2) times 2 - G for the other. So
// an entry's value is K times its number times two such weights, where
//   K = multiplier (1 - p / 2)^2 / Z.
// The vignette "proofs" has the proof of the error, in the section "Tables of
// alleles". Plain C++, for host and device.

#include "core/contract/allele_table.hpp"
#include "core/contract/metric.hpp"

namespace fsknn {

/// The error of an entry in floats on CPUs, relative to Z.
constexpr double kTableError = 0x1p-19;
/// From so many samples on, entries may not be exact floats.
constexpr double kMostTableSamples = 0x1p21;

/// A row's numbers.
struct TableNumbers {
  float counted;  ///< n
  float others;   ///< m
  float weight;   ///< G
};

/// Z.
FSKNN_HD inline double pairs_of_table(const TableTerms& t) {
  return t.copies * t.copies * t.samples;
}
/// K.
FSKNN_HD inline double unit_of_table(const TableTerms& t) {
  const double half = 1.0 - 0.5 * t.parameter;
  return t.multiplier * (half * half) / pairs_of_table(t);
}

/// G, of a row with this sum.
FSKNN_HD inline double weight_of_counted(const TableTerms& t, double sum) {
  const double weight = 1.0 - t.parameter * (sum / (t.copies * t.samples));
  return weight / (1.0 - 0.5 * t.parameter);
}

FSKNN_HD inline TableNumbers table_numbers(const TableTerms& t, double sum) {
  const double n = t.copies * sum;
  return {static_cast<float>(n),
          static_cast<float>(0.5 * pairs_of_table(t) - n),
          static_cast<float>(weight_of_counted(t, sum))};
}

// Tables of three loci ("Triples of alleles" in the proofs), of C^3 d triples
// of alleles. Entries are exact floats below kMostTableSamples, too.

/// The error of an entry in floats, relative to C^3 d.
constexpr double kErrorOfThree = 0x1p-18;
/// Covers the rounding of similarities in double.
constexpr double kRoundingOfThree = 0x1p-45;

/// The constants that turn similarities into entries in floats.
struct ThreeLoci {
  double unit;   ///< the similarity of an entry of 1 in floats
  double error;  ///< of an entry in floats

  FSKNN_HD explicit ThreeLoci(const TableTerms& t)
      : unit(unit_of_table(t) * (1.0 - 0.5 * t.parameter) / t.copies),
        error(kErrorOfThree * (t.copies * pairs_of_table(t))) {}
  /// No triple that is at least so similar has a smaller entry in floats.
  FSKNN_HD double limit_of(double similarity) const {
    return similarity * (1.0 - kRoundingOfThree) / unit - error;
  }
  /// The similarity of an entry in floats is between these two.
  FSKNN_HD double least_of(double entry) const {
    const double least = entry - error;
    return (least > 0.0 ? least : 0.0) * unit * (1.0 - kRoundingOfThree);
  }
  FSKNN_HD double most_of(double entry) const {
    return (entry + error) * unit * (1.0 + kRoundingOfThree);
  }
};

/// both: the sum of products; a, b: the points' sums.
FSKNN_HD inline TripleTableRow triple_table_row(const TableTerms& t,
                                                double both, double a,
                                                double b) {
  const double c = t.copies;
  const double g = weight_of_counted(t, a), h = weight_of_counted(t, b);
  TripleTableRow row;
  for (int q = 0; q < 4; ++q) {
    row.pair[q] = static_cast<float>(
        c * AlleleTable::number_of(q / 2, q % 2, both, c * a, c * b,
                                   c * c * t.samples));
    row.weight[q] = static_cast<float>((q / 2 == 1 ? g : 2.0 - g) *
                                       (q % 2 == 1 ? h : 2.0 - h));
  }
  return row;
}

/// No triple with these two points has a larger entry in floats, apart from
/// rounding within the slack of limit_of().
FSKNN_HD inline double most_of_row(const TableTerms& t,
                                   const TripleTableRow& row) {
  float most = 0.0f;
  for (int q = 0; q < 4; ++q) {
    const float entry = row.pair[q] * row.weight[q];
    most = entry > most ? entry : most;
  }
  return static_cast<double>(most) * (1.0 + 0x1p-20) /
         (1.0 - 0.5 * t.parameter);
}

}  // namespace fsknn
