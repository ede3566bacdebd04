#pragma once

// Stage "filter" on the CPU: rows in 16-bit whole numbers, and thresholds such
// that no pair of a row and one of its k nearest is ever dropped.
//
// The sums of the filter are whole numbers, computed without any rounding, so
// the same on every processor. What separates them from the contract's double
// is only how rows were rounded to whole numbers; that is measured when a row
// is packed, and allowed for (vignette "method", "The filter's bound").
// Elementwise metrics have one unit for the whole matrix; where its range is
// so wide that the unit would blur near rows (counts, for one), the rows are
// floats instead, at half the speed, and the rounding of sums is allowed for.

#include <cstdint>

#include "core/buffer.hpp"
#include "core/prepared.hpp"
#include "cpu/kernels.hpp"

namespace fsknn {
namespace cpu {

/// What the rows of one search have in common.
struct FilterScale {
  Test test = Test::similarity;
  Product product = Product::dot;
  bool floats = false;      ///< rows and sums are floats
  double unit = 1.0;        ///< elementwise metrics: what 1 stands for
  std::int32_t largest = 0; ///< no whole number of a row is beyond
  Buffer<double> centre;    ///< [padded] subtracted from every row; may be empty
  double slack = 0.0;       ///< relative, or absolute for similarities
};

/// Rows in the filter's form, and what the test needs to know of each.
struct FilterRows {
  std::int64_t num_places = 0;  ///< padded to whole chunks; rows beyond size() are 0
  std::int64_t steps = 0;       ///< padded / 2 in whole numbers, padded in floats
  Buffer<std::int32_t> panels;  ///< [num_places / 16][steps][16], see Tile
  Buffer<std::int32_t> first;   ///< [num_places], see Test
  Buffer<std::int32_t> second;
  Buffer<std::int32_t> first_upper;  ///< the same for upper bounds
  Buffer<std::int32_t> second_upper;
  double error = 0.0;           ///< largest relative rounding of a row

  const std::int32_t* panel(std::int64_t place) const {
    return panels.data() + place / Tile::panel * steps * Tile::panel;
  }
  /// The row at `place` within its panel; whole micro-tiles start there.
  const std::int32_t* row(std::int64_t place) const {
    return panel(place) + place % Tile::panel;
  }
  Side side(const std::int32_t* threshold, std::int64_t place) const {
    return {threshold, first.data() + place, second.data() + place};
  }
  Side upper_side(std::int64_t place) const {
    return {nullptr, first_upper.data() + place, second_upper.data() + place};
  }
};

/// Chooses the test and the common scale from points and queries (null when
/// the points are the queries).
FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads);

/// Packs prepared rows; fills all but what set_bounds() fills. progress (may be
/// null) is only asked whether to go on.
FilterRows pack(const FilterScale& scale, const PreparedPoints& points,
                std::int64_t num_places, int num_threads,
                Progress* progress = nullptr);

/// Once all rows' errors are known: the common slack; and with it the rows'
/// numbers.
void set_slack(FilterScale& scale, double error, std::int64_t padded);
void complete(const FilterScale& scale, FilterRows& rows);

/// Completes the rows' numbers and the common slack, once all rows' errors are
/// known. rows may be the same object as columns.
void set_bounds(FilterScale& scale, FilterRows& rows, FilterRows& columns,
                std::int64_t padded);

/// The thresholds: what a returned distance means to the test.
class Thresholds {
 public:
  Thresholds(const FilterScale& scale, const MetricEntry& metric,
             const DistanceRule& rule)
      : scale_(scale), metric_(metric), rule_(rule) {}
  /// No pair at most `distance` apart fails the test with this threshold.
  std::int32_t keep_up_to(double distance) const;
  /// Every pair passes / this side lets no pair pass.
  std::int32_t keep_all() const;
  std::int32_t keep_none() const;
  /// A returned distance that no pair exceeds whose upper_key was at most
  /// `key`, for the row with these numbers. Infinity where nothing is known.
  double upper_distance(float key, const Side& row) const;

 private:
  const FilterScale& scale_;
  const MetricEntry& metric_;
  const DistanceRule& rule_;
};

}  // namespace cpu
}  // namespace fsknn
