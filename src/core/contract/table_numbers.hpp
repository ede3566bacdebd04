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

}  // namespace fsknn
