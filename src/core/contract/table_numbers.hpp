#pragma once

// Tables of alleles (AlleleTable in metrics.hpp) in the filters of CPUs and
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

/// The error of largest_of_table(), relative to Z.
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

/// The error of largest_of_table() as (1 - distance) / K. Distances are
/// rounded, so that different similarities may have equal ones.
FSKNN_HD inline double error_of_table(const TableTerms& t) {
  return kTableError * pairs_of_table(t) + 0x1p-44 / unit_of_table(t);
}

FSKNN_HD inline TableNumbers table_numbers(const TableTerms& t, double sum) {
  const double n = t.copies * sum;
  const double weight = 1.0 - t.parameter * (sum / (t.copies * t.samples));
  return {static_cast<float>(n),
          static_cast<float>(0.5 * pairs_of_table(t) - n),
          static_cast<float>(weight / (1.0 - 0.5 * t.parameter))};
}

/// The largest entry of the table of two rows with this sum of products, in
/// units of K.
FSKNN_HD inline float largest_of_table(float sum, const TableNumbers& a,
                                       const TableNumbers& b) {
  const float rest_a = 2.0f - a.weight, rest_b = 2.0f - b.weight;
  const float both = sum * (a.weight * b.weight);
  const float none = ((a.others + b.others) + sum) * (rest_a * rest_b);
  const float one = (a.counted - sum) * (a.weight * rest_b);
  const float other = (b.counted - sum) * (rest_a * b.weight);
  return fmaxf(fmaxf(both, none), fmaxf(one, other));
}

}  // namespace fsknn
