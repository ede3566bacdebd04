#pragma once

// All triples of one point (the apex) with two others. X_j = max(v_apex, v_j)
// is computed once, in floats. Then max(X_j, X_k) is the largest of the three,
// so that pairs of the X are compared tile by tile. The vignette "proofs"
// bounds the errors of floats and their sums.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/triples.hpp"
#include "cpu/triples/triples_kernels.hpp"

namespace fsknn {
namespace cpu {

/// The points as floats, times a power of two and rounded towards 0. If all
/// values are small whole numbers and there are kernels for them, they are
/// thermometer codes. Word w bits + t of a row tells, for features 32 w to 32 w
/// + 31, whether the value exceeds t.
class TripleRows {
 public:
  TripleRows(const PreparedPoints& points, const TripleKernels& kernels,
             int num_threads, Progress* progress);

  const PreparedPoints& points() const { return *points_; }
  const TripleKernels& kernels() const { return *kernels_; }
  std::int64_t size() const { return points_->size(); }
  std::int64_t steps() const { return steps_; }
  std::int64_t num_panels() const {
    return (size() + TripleTile::panel - 1) / TripleTile::panel;
  }
  /// Bits of a value's code; 0: floats.
  int bits() const { return bits_; }
  /// The approximate number of features in a step.
  double features_a_step() const {
    return static_cast<double>(points_->num_features) /
           static_cast<double>(steps_);
  }
  /// [step][16]; places beyond the end are rows of zeros.
  const float* panel(std::int64_t p) const {
    return panels_.data() + p * TripleTile::panel * steps_;
  }
  /// A row's sum for tests: an upper bound on float sums of largest values with
  /// that exact sum. Infinite for a row so empty that similarities are coarse.
  float most(std::int64_t place) const { return most_[place]; }
  /// The same for a sum of several rows.
  float most_of(double sum) const;
  /// Scales a sum by the power of two.
  double scaled(double sum) const {
    return (sum * scale_.first) * scale_.second;
  }
  /// The larger of two numbers of a panel.
  float larger(float a, float b) const;
  double scaled_sum(std::int64_t place) const {
    return scaled(points_->sums[place]);
  }
  double largest_sum() const { return largest_sum_; }
  /// The number of float roundings in one sum.
  double roundings() const { return roundings_; }
  /// sum_of_largest() relative to the three rows' total.
  double similarity(std::int64_t a, std::int64_t b, std::int64_t c) const {
    const PreparedPoints& p = *points_;
    return similarity_of_three(kernels_->exact(p.row(Place{a}), p.row(Place{b}),
                                               p.row(Place{c}), p.padded),
                               p.sums[a], p.sums[b], p.sums[c]);
  }

  /// The number of steps that are summed before they are added to the others'
  /// sum.
  static constexpr std::int64_t kDepth = 256;
  /// For smaller totals the exact step may round coarsely, to subnormal
  /// numbers.
  static constexpr double kCoarse = 0x1p-1020;

 private:
  void fill_floats(std::int64_t panel);
  void fill_codes(std::int64_t panel);

  const PreparedPoints* points_;
  int bits_;
  const TripleKernels* kernels_;
  std::int64_t steps_;
  PowerOfTwo scale_;
  double largest_sum_ = 0.0, roundings_ = 0.0;
  Buffer<float> panels_, most_;
};

/// A share, rounded up to a float for the test.
float float_above(double x);

/// The triples of one apex, tile by tile. Each thread has one.
class ApexPass {
 public:
  explicit ApexPass(const TripleRows& rows);

  /// Starts an apex: computes the sums of its pairs.
  void enter(std::int64_t apex, const TripleOwners& owners);
  /// Chooses the other points of its triples. Unless `bound` is null, it omits
  /// points that the bound excludes.
  void choose(const TripleOwners& owners, const TripleBound* bound);
  /// The float sum of the apex and the point at a place.
  float pair_sum(std::int64_t place) const { return pair_sum_[place]; }

  /// A tile: 4 rows and 16 columns of the others; -1 is padding. A pair counts
  /// if its row's place is below its column's.
  struct Tile {
    const float* sums;
    const std::int64_t* rows;
    const std::int64_t* columns;
    const float* most_of_rows;  ///< including the apex's
    const float* most_of_columns;
  };
  /// Calls take(tile) for all tiles, or for part `part` (from 0) of `parts`.
  /// wanted(place): whether it may be a row; panels without wanted rows are not
  /// summed.
  template <class Wanted, class Take>
  void tiles(std::int64_t part, std::int64_t parts, const Wanted& wanted,
             const Take& take);
  /// The number of features of triples that were compared.
  double comparisons() const { return comparisons_; }

 private:
  static constexpr std::int64_t kPanels = 4;  ///< in a block of tiles

  void fill();
  void sum_block(std::int64_t row_panel, std::int64_t row_end,
                 std::int64_t column_panel, std::int64_t column_end);
  float* sums_of(std::int64_t row, std::int64_t group, std::int64_t column) {
    return block_.data() +
           ((row * (TripleTile::panel / TripleTile::rows) + group) * kPanels +
            column) *
               TripleTile::size;
  }

  const TripleRows& rows_;
  std::int64_t apex_ = 0, first_panel_ = 0;
  std::vector<std::int64_t> others_;
  Buffer<float> pair_sum_, larger_, block_;
  // By places of X; only wanted ones are rows.
  std::vector<std::int64_t> at_, row_at_;
  std::vector<char> has_rows_;  ///< by panels
  std::vector<float> most_, most_of_row_;
  std::int64_t panels_ = 0;
  double comparisons_ = 0;
};

template <class Wanted, class Take>
void ApexPass::tiles(std::int64_t part, std::int64_t parts,
                     const Wanted& wanted, const Take& take) {
  constexpr std::int64_t n = TripleTile::panel, groups = n / TripleTile::rows;
  row_at_ = at_;
  has_rows_.assign(static_cast<std::size_t>(panels_), 0);
  for (std::size_t x = 0; x < row_at_.size(); ++x) {
    std::int64_t& place = row_at_[x];
    if (place >= 0 && !wanted(place)) place = -1;
    if (place >= 0) has_rows_[x / static_cast<std::size_t>(n)] = 1;
  }
  const double cost = 0.2 * static_cast<double>(rows_.steps()) *
                      static_cast<double>(kPanels * kPanels * n * n) / 8;
  std::int64_t number = 0;
  const auto has_rows = [&](std::int64_t p) {
    return has_rows_[static_cast<std::size_t>(p)] != 0;
  };
  for (std::int64_t r = 0; r < panels_; r += kPanels) {
    bool any = false;
    for (std::int64_t p = r; p < std::min(panels_, r + kPanels); ++p)
      any = any || has_rows(p);
    if (!any) continue;
    for (std::int64_t c = r; c < panels_; c += kPanels) {
      if (number++ % parts != part) continue;
      const std::int64_t row_end = std::min(panels_, r + kPanels);
      const std::int64_t column_end = std::min(panels_, c + kPanels);
      sum_block(r, row_end, c, column_end);
      poll_after(cost);
      for (std::int64_t p = r; p < row_end; ++p) {
        if (!has_rows(p)) continue;
        for (std::int64_t g = 0; g < groups; ++g)
          for (std::int64_t q = std::max(p, c); q < column_end; ++q) {
            const std::size_t row = static_cast<std::size_t>(p * n + g * 4);
            const std::size_t column = static_cast<std::size_t>(q * n);
            take(Tile{sums_of(p - r, g, q - c), row_at_.data() + row,
                      at_.data() + column, most_of_row_.data() + row,
                      most_.data() + column});
          }
      }
    }
  }
}

/// Work in pieces: an apex, or a part of an apex if there are few.
struct ApexPieces {
  ApexPieces(std::vector<std::int64_t> which, int num_threads)
      : apexes(std::move(which)) {
    const std::int64_t count = static_cast<std::int64_t>(apexes.size());
    if (num_threads > 1 && count < 8 * num_threads) parts = 4 * num_threads;
  }
  std::int64_t size() const {
    return static_cast<std::int64_t>(apexes.size()) * parts;
  }
  std::int64_t apex(std::int64_t piece) const {
    return apexes[static_cast<std::size_t>(piece / parts)];
  }
  std::int64_t part(std::int64_t piece) const { return piece % parts; }
  std::vector<std::int64_t> apexes;
  std::int64_t parts = 1;
};

/// The useful number of threads.
int triple_threads(const Request& request, const PreparedPoints& points);

/// Calls each(row's place, column's place) for the pairs of a tile with a bit
/// in `keep`.
template <class Each>
void for_kept(const ApexPass::Tile& tile, const std::uint32_t* keep,
              const Each& each) {
  for (int r = 0; r < TripleTile::rows; ++r) {
    const std::int64_t row = tile.rows[r];
    if (row < 0) continue;
    for (std::uint32_t mask = keep[r]; mask != 0; mask &= mask - 1) {
      const int c = __builtin_ctz(mask);
      if (tile.columns[c] > row) each(row, tile.columns[c], r, c);
    }
  }
}

}  // namespace cpu
}  // namespace fsknn
