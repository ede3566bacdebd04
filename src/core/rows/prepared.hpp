#pragma once

// Points after stage "prepare", and the rule that turns an accumulated sum of
// two of them into the distance that the user gets.

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
  Buffer<double> sums;  ///< [num_active]; what prepare_row() returned

  bool whole_ranks = false;  ///< see RowRecipe
  /// Triples of wide data: no bound is made of sums, which may be below 0
  /// (part_of_sum()).
  bool wide = false;

  // Rows that are not held, since they can be made again: from what, and how.
  const RowSource* source = nullptr;  ///< null: `rows` holds them
  RowRecipe recipe;
  RowKernel kernel = nullptr;

  std::int64_t size() const { return order.num_active(); }
  bool held() const { return source == nullptr; }
  /// Of rows that are held.
  const double* row(Place place) const {
    return rows.data() + place.value * padded;
  }
};

/// One thread's way to prepared rows, held or not.
class RowReader {
 public:
  explicit RowReader(const PreparedPoints& points)
      : points_(&points), made_(points.held() ? 0 : points.padded) {}
  /// The row at `place`; what is not held stays until the next call.
  const double* operator()(Place place) {
    if (points_->held()) return points_->row(place);
    make(place, made_.data());
    return made_.data();
  }
  /// Makes a row that is not held, or copies it; `out` takes `padded` doubles.
  void make(Place place, double* out);

 private:
  const PreparedPoints* points_;
  Buffer<double> made_;
  RowScratch scratch_;
};

/// One thread's way to rows as filters are made of them: whole ranks are
/// brought to length 1.
class FilterReader {
 public:
  explicit FilterReader(const PreparedPoints& points)
      : points_(&points),
        reader_(points),
        made_(points.whole_ranks ? points.padded : 0) {}
  /// The row at `place`; what is not held stays until the next call.
  const double* operator()(Place place);
  /// The sum that goes with it.
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
      : finish_(metric.finish),
        similarity_(metric.is_unit_dot() ? metric.similarity : nullptr),
        undo_(power_of_two(distance_exponent(metric, exponent))),
        redo_(power_of_two(-distance_exponent(metric, exponent))) {}
  double operator()(double sum, double sum_a, double sum_b) const {
    return scaled(finish_(sum, sum_a, sum_b), undo_);
  }
  /// r of a pair; 0 where the metric has none.
  double correlation(double sum, double sum_a, double sum_b) const {
    return similarity_ != nullptr ? clamp_to_one(similarity_(sum, sum_a, sum_b))
                                  : 0.0;
  }
  /// What tells both: r before it is clamped, else the distance.
  double value(double sum, double sum_a, double sum_b) const {
    return similarity_ != nullptr ? similarity_(sum, sum_a, sum_b)
                                  : (*this)(sum, sum_a, sum_b);
  }
  /// The power of two that the distance is multiplied by at last.
  PowerOfTwo undo() const { return undo_; }
  /// And its inverse.
  PowerOfTwo redo() const { return redo_; }
  /// No pair whose returned distance is at most `distance` has a distance
  /// above this one before the matrix's power of two was taken off.
  double before_scaling(double distance) const;
  /// The other way: at least the returned distance of any pair whose distance
  /// was at most `before`.
  double after_scaling(double before) const;

 private:
  double (*finish_)(double, double, double);
  double (*similarity_)(double, double, double);  ///< null: there is no r
  PowerOfTwo undo_, redo_;
};

/// What the contract's sum over `padded` features and the distance made of it
/// may differ from the true ones, relative to the sum of magnitudes.
inline double rounding_of_sums(std::int64_t padded) {
  const std::int64_t roundings = padded / kLanes + 32;
  return static_cast<double>(roundings) * 0x1p-50;
}

/// What the request's metric does to rows; `exponent` is matrix_exponent()'s.
/// The request's weights and covariates must stay.
RowRecipe recipe_of(const Request& request, int exponent);

/// The same for a source whose rows may be prepared already.
inline RowRecipe what_is_left(RowRecipe recipe, const RowSource& source) {
  if (source.prepared()) recipe.form = RowForm::ready;
  return recipe;
}

/// Reads, prepares and places all points of `source` but `skip`. progress (may
/// be null) is only asked whether to go on. Unless `hold`, rows of a source
/// that makes them when they are read, or is on disk, are not held.
PreparedPoints prepare_points(const RowSource& source, const RowRecipe& recipe,
                              const std::vector<std::int64_t>& skip,
                              bool shuffle, RowKernel kernel, int num_threads,
                              Progress* progress = nullptr, bool hold = true);

/// The request under the metric that suits the data (metric_for()). Where that
/// depends on the largest magnitude and it is not known, it is looked for.
Request suited(const Request& request, const RowSource& points,
               const RowSource* queries, Progress* progress = nullptr);

/// The exponent for matrix_exponent() over points and queries (may be null).
int common_exponent(const Request& request, const RowSource& points,
                    const RowSource* queries, int num_threads);

/// [places of the queries] request.query_self in their order; empty: none.
std::vector<std::int32_t> self_by_place(const Request& request,
                                        const PointOrder& queries);

/// The contract's sum over two prepared rows, in scalar code.
double scalar_sum(Accumulation accumulation, const double* a, const double* b,
                  std::int64_t padded);

/// Fills a row of `out` as missing; of edges there are none to fill.
void emit_missing(const Neighbours& out, AnswerRow row, std::int64_t k);

}  // namespace fsknn
