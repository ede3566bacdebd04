#pragma once

// Points after stage "prepare", and the rule that converts an accumulated sum
// of two of them to the returned distance.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/progress.hpp"
#include "core/contract/metric.hpp"
#include "core/contract/request.hpp"
#include "core/contract/row_scratch.hpp"
#include "core/rows/order.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

struct PreparedPoints {
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< features after padding, a multiple of 8
  PointOrder order;
  Buffer<double> rows;  ///< [num_active x padded], row-major, by place
  Buffer<double> sums;  ///< [num_active]; the results of prepare_row()

  bool whole_ranks = false;  ///< see RowRecipe
  /// Triples of wide data: there is no bound by sums, which may be negative
  /// (part_of_sum()).
  bool wide = false;

  // If rows can be recomputed and are not held: their source and recipe.
  const RowSource* source = nullptr;  ///< null: `rows` holds them
  RowRecipe recipe;
  RowKernel kernel = nullptr;

  std::int64_t size() const { return order.num_active(); }
  bool held() const { return source == nullptr; }
  double bytes() const {
    return 8.0 * static_cast<double>(rows.size() + sums.size()) +
           4.0 * static_cast<double>(order.id.size() + order.place.size());
  }
  /// For held rows only.
  const double* row(Place place) const {
    return rows.data() + place.value * padded;
  }
};

/// Reads prepared rows on one thread, whether they are held or not.
class RowReader {
 public:
  explicit RowReader(const PreparedPoints& points)
      : points_(&points), made_(points.held() ? 0 : points.padded) {}
  /// The row at `place`; if rows are not held, it is valid until the next call.
  const double* operator()(Place place) {
    if (points_->held()) return points_->row(place);
    make(place, made_.data());
    return made_.data();
  }
  /// Computes a row that is not held, or copies a held one. `out` has room for
  /// `padded` doubles.
  void make(Place place, double* out);

 private:
  const PreparedPoints* points_;
  Buffer<double> made_;
  RowScratch scratch_;
};

/// Reads rows as filters need them, on one thread: whole ranks are scaled to
/// length 1.
class FilterReader {
 public:
  explicit FilterReader(const PreparedPoints& points)
      : points_(&points),
        reader_(points),
        made_(points.whole_ranks ? points.padded : 0) {}
  /// The row at `place`; a temporary row is valid until the next call.
  const double* operator()(Place place);
  /// The sum that belongs to it.
  double sum(Place place) const {
    return points_->whole_ranks ? 0.0 : points_->sums[place.value];
  }

 private:
  const PreparedPoints* points_;
  RowReader reader_;
  Buffer<double> made_;
};

/// The distance as it is returned.
class DistanceRule {
 public:
  DistanceRule(const MetricEntry& metric, int exponent)
      : finish_(metric.finish_by),
        similarity_(metric.is_unit_dot() ? metric.similarity_by : nullptr),
        undo_{power_of_two(distance_exponent(metric, exponent)), metric.table},
        redo_(power_of_two(-distance_exponent(metric, exponent))) {}
  double operator()(double sum, double sum_a, double sum_b) const {
    return scaled(finish_(sum, sum_a, sum_b, undo_.table), undo_.scale);
  }
  /// r of a pair; 0 if the metric has none.
  double correlation(double sum, double sum_a, double sum_b) const {
    return similarity_ != nullptr
               ? clamp_to_one(similarity_(sum, sum_a, sum_b, undo_.table))
               : 0.0;
  }
  /// The value that determines both: r before clamping, else the distance.
  double value(double sum, double sum_a, double sum_b) const {
    return similarity_ != nullptr ? similarity_(sum, sum_a, sum_b, undo_.table)
                                  : (*this)(sum, sum_a, sum_b);
  }
  /// What makes the returned distance: see LastStep.
  LastStep undo() const { return undo_; }
  /// The inverse of undo().
  PowerOfTwo redo() const { return redo_; }
  /// The largest distance, before the matrix's power of two is undone, of any
  /// pair whose returned distance is at most `distance`.
  double before_scaling(double distance) const;
  /// The inverse: at least the returned distance of any pair whose distance was
  /// at most `before`.
  double after_scaling(double before) const;

 private:
  decltype(MetricEntry::finish_by) finish_;
  decltype(MetricEntry::similarity_by) similarity_;  ///< null: there is no r
  LastStep undo_;
  PowerOfTwo redo_;
};

/// The bound of the rounding error of the contract's sum over `padded`
/// features, and of its distance, relative to the sum of magnitudes.
inline double rounding_of_sums(std::int64_t padded) {
  const std::int64_t roundings = padded / kLanes + 32;
  return static_cast<double>(roundings) * 0x1p-50;
}

/// The recipe for rows under the request's metric; `exponent` is that of
/// matrix_exponent(). The request's weights and covariates must outlive it.
RowRecipe recipe_of(const Request& request, int exponent);

/// The remaining recipe for a source whose rows may already be prepared.
inline RowRecipe what_is_left(RowRecipe recipe, const RowSource& source) {
  if (source.prepared()) recipe.form = RowForm::ready;
  return recipe;
}

/// Reads and prepares all points of `source` except `skip`, and orders them.
/// progress (may be null) is only asked whether to continue. Without `hold`,
/// rows that their source makes when read, or that are on disk, are not held.
PreparedPoints prepare_points(const RowSource& source, const RowRecipe& recipe,
                              const std::vector<std::int64_t>& skip,
                              bool shuffle, RowKernel kernel, int num_threads,
                              Progress* progress = nullptr, bool hold = true);

/// The request with the metric that suits the data (metric_for()). If that
/// depends on an unknown largest magnitude, the data are scanned for it.
Request suited(const Request& request, const RowSource& points,
               const RowSource* queries, Progress* progress = nullptr);

/// matrix_exponent() for the largest magnitude of points and queries (may be
/// null).
int common_exponent(const Request& request, const RowSource& points,
                    const RowSource* queries, int num_threads);

/// [places of the queries] request.query_self in their order; empty: no query
/// is a point.
std::vector<std::int32_t> self_by_place(const Request& request,
                                        const PointOrder& queries);

/// The contract's sum over two prepared rows, in scalar code.
double scalar_sum(Accumulation accumulation, const double* a, const double* b,
                  std::int64_t padded);

/// Marks a row of `out` as missing; among edges it has no entries.
void emit_missing(const Neighbours& out, AnswerRow row, std::int64_t k);

}  // namespace fsknn
