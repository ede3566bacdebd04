#pragma once

// Points with missing values in the form that pairs are computed from
// (masked.hpp), and the answer by definition.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/progress.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/request.hpp"
#include "core/contract/row_scratch.hpp"
#include "core/rows/order.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

struct MaskedPoints {
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< features after padding, a multiple of 8
  std::int64_t words = 0;   ///< 64-bit words of a row's mask
  PointOrder order;
  Buffer<double> rows;          ///< [size x padded], by place; NaN: no value
  Buffer<std::uint64_t> masks;  ///< [size x words]; a set bit: a known value
  Buffer<std::int32_t> known;   ///< [size]: known values

  std::int64_t size() const { return order.num_active(); }
  const double* row(Place place) const {
    return rows.data() + place.value * padded;
  }
  const std::uint64_t* mask(Place place) const {
    return masks.data() + place.value * words;
  }
};

/// The rule of a search over common samples for rows and pairs.
class MaskedRule {
 public:
  /// queries may be null.
  MaskedRule(const Request& asked, const RowSource& points,
             const RowSource* queries, Progress* progress = nullptr);

  const MaskedTerms& terms() const { return terms_; }
  bool has_tables() const { return terms_.table.copies > 0.0; }
  bool correlates() const {
    return terms_.accumulation == Accumulation::dot && !has_tables();
  }
  RowForm form() const { return metric_->row_form; }
  /// The matrix's scale, for raw rows.
  PowerOfTwo scale() const { return scale_; }
  const DistanceRule& distances() const { return rule_; }
  /// Converts masked_pair() to the value that a WithinCollector takes: r, or
  /// the distance. NaN stays NaN.
  double value(double pair) const {
    if (has_tables()) return 1.0 - pair;
    return correlates() ? pair : rule_(pair, 0.0, 0.0);
  }
  /// The distance for that value.
  double distance(double value) const {
    return correlates() ? metric_->finish(value, 0.0, 0.0) : value;
  }

 private:
  const MetricEntry* metric_;
  MaskedTerms terms_;
  PowerOfTwo scale_;
  DistanceRule rule_;
};

/// Prepares one row of d features, NaN where no value is known, in place.
/// Ranked rows are ranked over their values; rows are scaled by their power of
/// two (raw rows: by the rule's) and padded with NaN. Returns the number of
/// values. The caller owns `scratch`.
struct MaskedScratch {
  AverageRanks ranks;
  std::vector<double> values;
};
std::int64_t prepare_masked_row(const MaskedRule& rule, MaskedScratch& scratch,
                                double* x, std::int64_t d, std::int64_t padded);

/// Rows of another source, ranked over their known values. Only the scaling by
/// a power of two remains to be done.
class RankedKnown final : public RowSource {
 public:
  explicit RankedKnown(const RowSource& from) : from_(from) {}
  std::int64_t num_points() const override { return from_.num_points(); }
  std::int64_t num_features() const override { return from_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;

 private:
  const RowSource& from_;
};

/// Reads and prepares all points of `source` except `skip`, and orders them.
MaskedPoints prepare_masked(const RowSource& source, const MaskedRule& rule,
                            const std::vector<std::int64_t>& skip, bool shuffle,
                            int num_threads, Progress* progress = nullptr);

/// Values minus their column's centre, in a unit in which the largest value of
/// a typical row is near 1. Filters of differences use it.
struct MaskedUnits {
  std::vector<double> centre;  ///< [num_features]
  PowerOfTwo by = {1.0, 1.0};  ///< into that unit
  /// Converts a number of a row to this unit.
  double operator()(double x) const { return (x * by.first) * by.second; }
};

/// Uses the medians of some of the rows. If the largest of these rows exceeds
/// 2^headroom, the unit is larger, by up to 2^5.
MaskedUnits masked_units(const MaskedPoints& points, const MaskedRule& rule,
                         int headroom = 2000);
/// The same from these rows, every step-th of all; consecutive ones are
/// `stride` doubles apart.
std::int64_t masked_units_step(std::int64_t num_points);
MaskedUnits masked_units(const double* rows, std::int64_t count,
                         std::int64_t stride, std::int64_t num_features,
                         const MaskedRule& rule, int headroom = 2000);

/// Writes a row's neighbours. There may be fewer than k; the others are
/// missing. distance, index: sorted, `size` of them; correlation may be null.
/// Throws RangeFailure.
void emit_masked(const Neighbours& out, AnswerRow row, std::int64_t k,
                 std::int64_t size, const double* distance,
                 const std::int32_t* index, const double* correlation);

/// brute_force() if request.na_pairwise. queries: null for the graph.
void brute_force_masked(const Request& request, const RowSource& points,
                        const RowSource* queries, const Neighbours& out);

}  // namespace fsknn
