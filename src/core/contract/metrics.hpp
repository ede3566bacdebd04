#pragma once

// The metrics. Each entry is a struct: how a row is prepared, the accumulation
// over features, and how the accumulated sum becomes the distance. To add a
// metric, write its struct, add it to AllMetrics, and follow the vignette
// "extending" for the other three places.

#include <tuple>
#include <type_traits>

#include "core/contract/allele_table.hpp"
#include "core/contract/arithmetic.hpp"
#include "core/contract/metric.hpp"

namespace fsknn {

// The base of metrics from dot products of rows of length 1. Filters compare
// similarity(), and the distance is computed from it.
template <Sign sign_>
struct UnitDot {
  using Sum = Dot;
  static constexpr int wide_from = kNeverWide;
  static constexpr FilterKind filter = FilterKind::product;
  static constexpr Sign sign = sign_;
  static constexpr MatrixScale matrix_scale = MatrixScale::none;
  FSKNN_HD static double similarity(double s, double, double) { return s; }
  FSKNN_HD static double finish(double r, double, double) {
    return unit_distance(sign_, r);
  }
};

template <Sign sign_>
struct Pearson : UnitDot<sign_> {
  static constexpr const char* name = "pearson";
  static constexpr RowForm row_form = RowForm::centred_unit;
};

// Rows are whole ranks c, and their sums are sum c^2. A pair's sum is exact in
// any order of the samples. So pairs with the same r have the same bits, if
// they have the same ties. The square root of q^2, rounded, is q, so r of equal
// rows is 1. Rows with weights or covariates have length 1, and sums of 0.
template <Sign sign_>
struct Spearman : UnitDot<sign_> {
  static constexpr const char* name = "spearman";
  static constexpr RowForm row_form = RowForm::ranked;
  FSKNN_HD static double similarity(double s, double squares_a,
                                    double squares_b) {
    return unit_similarity(s, squares_a, squares_b);
  }
  FSKNN_HD static double finish(double s, double squares_a, double squares_b) {
    return UnitDot<sign_>::finish(similarity(s, squares_a, squares_b), 0.0,
                                  0.0);
  }
};

// Biweight midcorrelation, as in WGCNA::bicor() with its defaults: maxPOutliers
// = 1, and Pearson's form for rows whose median absolute deviation is 0.
template <Sign sign_>
struct Bicor : UnitDot<sign_> {
  static constexpr const char* name = "bicor";
  static constexpr RowForm row_form = RowForm::biweight_unit;
};

struct Cosine : UnitDot<Sign::signed_value> {
  static constexpr const char* name = "cosine";
  static constexpr RowForm row_form = RowForm::unit;
};

struct RawMetric {
  static constexpr int wide_from = kNeverWide;
  static constexpr Sign sign = Sign::signed_value;
  static constexpr RowForm row_form = RowForm::raw;
};

// A negative sum is a negated distance whose square is not a double
// (minus_distance()).
struct Euclidean : RawMetric {
  static constexpr const char* name = "euclidean";
  static constexpr int wide_from = 160;
  using Sum = SquaredDifference;
  static constexpr FilterKind filter = FilterKind::product;
  static constexpr MatrixScale matrix_scale = MatrixScale::to_one;
  FSKNN_HD static double finish(double s, double, double) {
    return s < 0.0 ? -s : sqrt(s);
  }
};

// Larger products are nearer. Rows in the same direction have a negative
// distance, and a point need not be nearest to itself. The code has 0 - s,
// since -s may be -0.
struct InnerProduct : RawMetric {
  static constexpr const char* name = "inner_product";
  static constexpr int wide_from = 400;
  using Sum = Dot;
  static constexpr FilterKind filter = FilterKind::product;
  static constexpr MatrixScale matrix_scale = MatrixScale::products;
  FSKNN_HD static double finish(double s, double, double) { return 0.0 - s; }
};

struct Manhattan : RawMetric {
  static constexpr const char* name = "manhattan";
  static constexpr int wide_from = 981;
  using Sum = AbsoluteDifference;
  static constexpr FilterKind filter = FilterKind::difference;
  static constexpr MatrixScale matrix_scale = MatrixScale::sums;
  FSKNN_HD static double finish(double s, double, double) { return s; }
};

struct Chebyshev : RawMetric {
  static constexpr const char* name = "chebyshev";
  static constexpr int wide_from = 981;
  using Sum = LargestDifference;
  static constexpr FilterKind filter = FilterKind::largest;
  static constexpr MatrixScale matrix_scale = MatrixScale::sums;
  FSKNN_HD static double finish(double s, double, double) { return s; }
};

// Each term is from 0 to 1 at any scale, so no sum leaves double's range.
struct Canberra : RawMetric {
  static constexpr const char* name = "canberra";
  using Sum = RelativeDifference;
  static constexpr FilterKind filter = FilterKind::none;
  static constexpr MatrixScale matrix_scale = MatrixScale::none;
  FSKNN_HD static double finish(double s, double, double) { return s; }
};

// Metrics from sum min(a, b) and the two rows' sums (Joubert et al. 2018). The
// similarity is rounded once; the distance is 1 - similarity, which loses last
// bits below 1/2. The distance is a decreasing function of the overlap 2 sum
// min / (s_a + s_b), a number from 0 to 1. least_overlap() inverts it for the
// filter: each pair within `distance` has at least that overlap, apart from
// rounding, which the filter allows for.
struct Overlapping : RawMetric {
  using Sum = SmallerSum;
  static constexpr MatrixScale matrix_scale = MatrixScale::overlap;
  FSKNN_HD static double at_most_one(double similarity) {
    return similarity > 1.0 ? 1.0 : similarity;
  }
};

struct Proportional : Overlapping {
  static constexpr const char* name = "proportional";
  static constexpr int wide_from = 981;
  static constexpr FilterKind filter = FilterKind::overlap;
  // Sums of wide data may leave double's range, or be negative (part_of_sum()).
  FSKNN_HD static double similarity(double s, double sum_a, double sum_b) {
    const double total = sum_a + sum_b;
    if (sum_a >= 0.0 && sum_b >= 0.0 && total < 0x1p1023)
      return at_most_one((2.0 * s) / total);
    return at_most_one((2.0 * part_of_sum(s)) /
                       (part_of_sum(sum_a) + part_of_sum(sum_b)));
  }
  FSKNN_HD static double finish(double s, double sum_a, double sum_b) {
    return 1.0 - similarity(s, sum_a, sum_b);
  }
  FSKNN_HD static double least_overlap(double distance) {
    return overlap_at(distance);
  }
};

// For rows of 0 and 1, sum min(a, b) is the number of features that both rows
// have, and their sums are the numbers that each has. So Sorensen's similarity
// (Dice's) is Proportional's, and Jaccard's is both / either. Sums are whole
// numbers and exact.
struct Sorensen : Proportional {
  static constexpr const char* name = "sorensen";
  static constexpr int wide_from = kNeverWide;
  static constexpr FilterKind filter = FilterKind::bits;
};

struct Jaccard : Overlapping {
  static constexpr const char* name = "jaccard";
  static constexpr FilterKind filter = FilterKind::bits;
  FSKNN_HD static double similarity(double both, double sum_a, double sum_b) {
    return at_most_one(both / ((sum_a + sum_b) - both));
  }
  FSKNN_HD static double finish(double both, double sum_a, double sum_b) {
    return 1.0 - similarity(both, sum_a, sum_b);
  }
  // With the overlap o = 2 both / (s_a + s_b), both / either is o / (2 - o).
  FSKNN_HD static double least_overlap(double distance) {
    return (2.0 * (1.0 - distance)) / (2.0 - distance);
  }
};

/// The metrics of genotypes (allele_table.hpp).
struct TableMetric : RawMetric {
  using Sum = Dot;
  static constexpr FilterKind filter = FilterKind::table;
  static constexpr MatrixScale matrix_scale = MatrixScale::none;
  FSKNN_HD static double similarity(double both, double sum_a, double sum_b,
                                    const TableTerms& t) {
    int which;
    return AlleleTable::largest_entry(
        AlleleTable::complete(both, sum_a, sum_b, t), t, which);
  }
  FSKNN_HD static double finish(double both, double sum_a, double sum_b,
                                const TableTerms& t) {
    return 1.0 - similarity(both, sum_a, sum_b, t);
  }
};

// CoMet's multipliers and parameter.
struct Ccc : TableMetric {
  static constexpr const char* name = "ccc";
  static TableTerms terms() { return {2.0, 0.0, 9.0 / 2.0, 2.0 / 3.0}; }
};

struct Duo : TableMetric {
  static constexpr const char* name = "duo";
  static TableTerms terms() { return {1.0, 0.0, 4.0, 2.0 / 3.0}; }
};

template <class M>
constexpr bool is_table_metric = std::is_base_of<TableMetric, M>::value;

/// M::finish() and M::similarity(), with the constants where they need them.
template <class M>
FSKNN_HD double finish_by(double sum, double sum_a, double sum_b,
                          const TableTerms& table) {
  if constexpr (is_table_metric<M>)
    return M::finish(sum, sum_a, sum_b, table);
  else
    return M::finish(sum, sum_a, sum_b);
}
template <class M>
FSKNN_HD double similarity_by(double sum, double sum_a, double sum_b,
                              const TableTerms& table) {
  if constexpr (is_table_metric<M>)
    return M::similarity(sum, sum_a, sum_b, table);
  else
    return M::similarity(sum, sum_a, sum_b);
}

// Wide data have an entry of 2^wide_from or more. No power of two keeps all
// digits of the other entries, so rows are not scaled, and there is no filter.
// Distances are those of the metric.
template <class M, class Sum_ = typename M::Sum>
struct Wide : M {
  using Sum = Sum_;
  static constexpr FilterKind filter = FilterKind::none;
  static constexpr MatrixScale matrix_scale = MatrixScale::none;
  static constexpr int wide_from = kNeverWide;
};

using WideMetrics =
    std::tuple<Wide<Euclidean>, Wide<InnerProduct, WideDot>, Wide<Manhattan>,
               Wide<Chebyshev>, Wide<Proportional>>;

using AllMetrics =
    std::tuple<Pearson<Sign::signed_value>, Pearson<Sign::absolute>,
               Pearson<Sign::negative>, Spearman<Sign::signed_value>,
               Spearman<Sign::absolute>, Spearman<Sign::negative>,
               Bicor<Sign::signed_value>, Bicor<Sign::absolute>,
               Bicor<Sign::negative>, Cosine, Euclidean, InnerProduct,
               Manhattan, Chebyshev, Canberra, Proportional, Jaccard, Sorensen,
               Ccc, Duo>;

}  // namespace fsknn
