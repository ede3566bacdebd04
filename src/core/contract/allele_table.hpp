#pragma once

// Metrics of genotypes: the largest entry of the table of two loci's alleles
// (Climer et al. 2014; CoMet's CCC and DUO, of 2 and of 1 allele a sample).
// Rows are counts of an allele, from 0 to `copies`, and a row's sum is its
// count in all samples. Each of the copies^2 pairs of alleles that a sample has
// at the two loci adds 1 to the table. So all entries follow from the sum of
// products, which is a whole number and exact.
//
// An entry is weighted by its alleles' frequencies:
//   multiplier f_ij (1 - parameter f_i) (1 - parameter f_j).
// Operations and their order are CoMet's, so that entries have its bits. The
// smaller frequency comes first, which makes an entry symmetric: the proof is
// in vignettes/proofs.Rmd, "The arithmetic of each metric".
//
// Three loci have a table of eight entries, with another frequency and weight.

#include <cmath>

#include "core/base/compiler.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

/// The sums of a pair of rows over its common samples: of products, of each
/// row, and the number of samples. And each row's own sum and number.
struct PairSums {
  double both, a, b, samples;
  double own_a, samples_a, own_b, samples_b;
};

/// The sums of products of three rows and of each two, and the rows' sums.
struct ThreeSums {
  double abc, ab, ac, bc, a, b, c;
};

struct AlleleTable {
  /// The frequency of the counted (1) or the other (0) allele of a row.
  FSKNN_HD static double frequency(int allele, double sum, double samples,
                                   const TableTerms& t) {
    const double count = allele ? sum : t.copies * samples - sum;
    return (1.0 / t.copies) * (1.0 / samples) * count;
  }
  /// 1 - parameter * frequency. The product is rounded first, as CoMet's is, so
  /// it must not become part of a fused operation.
  FSKNN_HD static double weight(double frequency, const TableTerms& t) {
    return 1.0 - fma(t.parameter, frequency, 0.0);
  }
  /// The number of counted (1) or other (0) alleles of two rows, from that of
  /// both counted ones, of each row's counted ones, and of all.
  FSKNN_HD static double number_of(int allele_a, int allele_b, double both,
                                   double of_a, double of_b, double all) {
    if (allele_a && allele_b) return both;
    if (allele_a) return of_a - both;
    return allele_b ? of_b - both : all - (of_a + of_b) + both;
  }
  /// The entry of the counted (1) or the other (0) alleles of both rows.
  FSKNN_HD static double entry_of(int allele_a, int allele_b, const PairSums& s,
                                  const TableTerms& t) {
    const double square = t.copies * t.copies;
    const double a = frequency(allele_a, s.own_a, s.samples_a, t);
    const double b = frequency(allele_b, s.own_b, s.samples_b, t);
    const double low = a < b ? a : b, high = a < b ? b : a;
    const double share = (1.0 / square) * (1.0 / s.samples) *
                         number_of(allele_a, allele_b, s.both, t.copies * s.a,
                                   t.copies * s.b, square * s.samples);
    return t.multiplier * share * weight(low, t) * weight(high, t);
  }
  /// The similarity of two rows. `which`: the number of the largest entry, 2
  /// allele_a + allele_b; of equal ones the first.
  FSKNN_HD static double largest_entry(const PairSums& s, const TableTerms& t,
                                       int& which) {
    double largest = entry_of(0, 0, s, t);
    which = 0;
    for (int at = 1; at < 4; ++at) {
      const double other = entry_of(at / 2, at % 2, s, t);
      if (other > largest) which = at;
      largest = other > largest ? other : largest;
    }
    return without_excess(largest);
  }
  /// The sums of rows without missing values.
  FSKNN_HD static PairSums complete(double both, double sum_a, double sum_b,
                                    const TableTerms& t) {
    return {both, sum_a, sum_b, t.samples, sum_a, t.samples, sum_b, t.samples};
  }
  /// With CoMet's constants, only rounding makes an entry more than 1.
  FSKNN_HD static double without_excess(double largest) {
    return largest > 1.0 && largest < 1.0 + 0x1p-48 ? 1.0 : largest;
  }

  /// The same of three rows: the weight of the smallest frequency is multiplied
  /// first, that of the largest last.
  FSKNN_HD static double entry_of(int allele_a, int allele_b, int allele_c,
                                  const ThreeSums& s, const TableTerms& t) {
    const double square = t.copies * t.copies;
    const double counted = number_of(allele_a, allele_b, s.abc, t.copies * s.ac,
                                     t.copies * s.bc, square * s.c);
    const double number =
        allele_c
            ? counted
            : t.copies * number_of(allele_a, allele_b, s.ab, t.copies * s.a,
                                   t.copies * s.b, square * t.samples) -
                  counted;
    const double a = frequency(allele_a, s.a, t.samples, t);
    const double b = frequency(allele_b, s.b, t.samples, t);
    const double c = frequency(allele_c, s.c, t.samples, t);
    const double low = a < b ? a : b, high = a < b ? b : a;
    const double least = c < low ? c : low, most = c < high ? high : c;
    const double middle = c < low ? low : c < high ? c : high;
    const double share =
        (1.0 / (square * t.copies)) * (1.0 / t.samples) * number;
    return t.multiplier * share * weight(least, t) * weight(middle, t) *
           weight(most, t);
  }
  /// The similarity of three rows. `which`: the number of the largest entry,
  /// 4 allele_a + 2 allele_b + allele_c; of equal ones the first.
  FSKNN_HD static double similarity_of_three(const ThreeSums& s,
                                             const TableTerms& t, int& which) {
    double largest = entry_of(0, 0, 0, s, t);
    which = 0;
    for (int at = 1; at < 8; ++at) {
      const double other = entry_of(at / 4, at / 2 % 2, at % 2, s, t);
      if (other > largest) which = at;
      largest = other > largest ? other : largest;
    }
    return without_excess(largest);
  }
};

}  // namespace fsknn
