#pragma once

// Samples some rows of a search, and enough columns that each row has some of
// its k nearest among them. The filter is chosen by their distances.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cpu/filter/sample.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// A distance in the units that filters compare.
inline double compared(const MetricEntry& metric, const DistanceRule& rule,
                       double distance) {
  return metric.least_overlap != nullptr ? 1.0 - metric.least_overlap(distance)
                                         : rule.before_scaling(distance);
}

class SampledPairs {
 public:
  /// queries is null if the points are the queries. All arguments but k must
  /// outlive this object.
  SampledPairs(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, std::int64_t k)
      : accumulation_(metric.accumulation),
        rule_(rule),
        kernels_(kernels),
        points_(points),
        of_(queries != nullptr ? *queries : points),
        graph_(queries == nullptr),
        num_rows_(std::min(kRows, of_.size())),
        num_columns_(std::min(
            points.size(),
            std::min(kMostColumns,
                     std::max<std::int64_t>(
                         64, (kNearest * points.size() + k - 1) / k)))),
        nearest_(std::max<std::int64_t>(1, k * num_columns_ / points.size())),
        rows_(sample_rows(of_, num_rows_)) {}

  std::int64_t num_rows() const { return num_rows_; }
  /// The number of a sampled row's pairs that are as near as its k-th
  /// neighbour.
  std::int64_t nearest() const { return nearest_; }
  Place place_of_row(std::int64_t i) const {
    return sampled(of_, i, num_rows_);
  }
  const double* row(std::int64_t i) const {
    return rows_.data() + i * points_.padded;
  }

  /// Calls begin(place, x) for each column, then take(i, distance) for each row
  /// with that column.
  template <class Begin, class Take>
  void each(Begin begin, Take take) const {
    std::vector<Pair> pairs(static_cast<std::size_t>(num_rows_));
    std::vector<double> sums(static_cast<std::size_t>(num_rows_));
    for (std::size_t i = 0; i < pairs.size(); ++i)
      pairs[i] = {static_cast<std::int32_t>(i), 0};
    FilterReader column(points_);
    const FilterReader row(of_);
    for (std::int64_t c = 0; c < num_columns_; ++c) {
      const Place at = sampled(points_, c, num_columns_);
      const double* x = column(at);
      begin(at, x);
      kernels_.exact(accumulation_, rows_.data(), x, points_.padded,
                     pairs.data(), num_rows_, sums.data());
      for (std::int64_t i = 0; i < num_rows_; ++i) {
        const Place place = place_of_row(i);
        if (graph_ && place.value == at.value) continue;
        take(i, rule_(sums[static_cast<std::size_t>(i)], row.sum(place),
                      column.sum(at)));
      }
    }
  }

 private:
  static constexpr std::int64_t kRows = 24;
  // The sample has enough columns that a row has this many of its k nearest.
  static constexpr std::int64_t kNearest = 2;
  static constexpr std::int64_t kMostColumns = 1 << 14;

  const Accumulation accumulation_;
  const DistanceRule& rule_;
  const Kernels& kernels_;
  const PreparedPoints& points_;
  const PreparedPoints& of_;
  const bool graph_;
  const std::int64_t num_rows_, num_columns_, nearest_;
  const Buffer<double> rows_;
};

}  // namespace cpu
}  // namespace fsknn
