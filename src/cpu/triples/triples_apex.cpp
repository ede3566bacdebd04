#include "cpu/triples/triples_apex.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/poll.hpp"
#include "core/base/small_numbers.hpp"
#include "cpu/kernels/kernels_includes.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int64_t kPanel = TripleTile::panel;

float float_below(double x) {  // x >= 0
  const float y = static_cast<float>(x);
  return static_cast<double>(y) > x ? std::nextafter(y, 0.0f) : y;
}

/// A power of two that scales the largest sum to about 2^100.
PowerOfTwo scale_for(double largest_sum) {
  return power_of_two(largest_sum > 0.0 ? 100 - exponent_of(largest_sum) : 0);
}

/// Returns the bits of a value's code where codes are faster; else 0.
int bits_of_codes(const PreparedPoints& points, const TripleKernels& kernels,
                  int num_threads) {
  // A float takes two instructions for one feature; a word takes three for 32
  // features of one bit.
  constexpr std::int32_t most = 16;
  // Up to this number float sums are exact.
  constexpr std::int64_t most_summed = std::int64_t{1} << 24;
  if (kernels.codes == nullptr || points.num_features > most_summed / most)
    return 0;
  return std::max(
      0, largest_whole(points.rows.data(), points.size() * points.padded, most,
                       num_threads));
}

}  // namespace

float float_above(double x) {
  const float y = static_cast<float>(x);
  return std::nextafter(y, std::numeric_limits<float>::infinity());
}

TripleRows::TripleRows(const PreparedPoints& points,
                       const TripleKernels& kernels, int num_threads,
                       Progress* progress)
    : points_(&points),
      bits_(bits_of_codes(points, kernels, num_threads)),
      kernels_(bits_ > 0 ? kernels.codes : &kernels),
      steps_(bits_ > 0 ? (points.num_features + 31) / 32 * bits_
                       : points.num_features),
      scale_(no_scaling()),
      panels_(num_panels() * kPanel * steps_),
      most_(num_panels() * kPanel) {
  for (std::int64_t p = 0; p < size() && !points.wide; ++p)
    largest_sum_ = std::max(largest_sum_, points.sums[p]);
  if (bits_ == 0) scale_ = scale_for(largest_sum_);
  // This scale makes all floats 0, so that every triple goes to the exact step.
  if (points.wide) scale_ = power_of_two(-1200);
  roundings_ =
      static_cast<double>(std::min(steps_, kDepth) + steps_ / kDepth + 2);
  for (std::int64_t p = 0; p < num_panels() * kPanel; ++p)
    most_[p] = p < size() ? most_of(points.sums[p]) : 0.0f;
  const double operations = 4.0 * static_cast<double>(size()) *
                            static_cast<double>(points.num_features);
  run_pieces(
      num_panels(), useful_threads(num_threads, operations),
      {progress, 0.0, 0.0}, [&] {
        return [&](std::int64_t p) {
          if (bits_ > 0)
            fill_codes(p);
          else
            fill_floats(p);
          poll_after(5.0 * static_cast<double>(kPanel * points.num_features));
        };
      });
}

void TripleRows::fill_floats(std::int64_t panel) {
  float* const to = panels_.data() + panel * kPanel * steps_;
  for (std::int64_t r = 0; r < kPanel; ++r) {
    const std::int64_t place = panel * kPanel + r;
    const double* const row =
        place < size() ? points_->row(Place{place}) : nullptr;
    for (std::int64_t f = 0; f < steps_; ++f)
      to[f * kPanel + r] =
          row == nullptr ? 0.0f
                         : float_below((row[f] * scale_.first) * scale_.second);
  }
}

void TripleRows::fill_codes(std::int64_t panel) {
  float* const to = panels_.data() + panel * kPanel * steps_;
  const std::int64_t features = points_->num_features;
  for (std::int64_t r = 0; r < kPanel; ++r) {
    const std::int64_t place = panel * kPanel + r;
    const double* const row =
        place < size() ? points_->row(Place{place}) : nullptr;
    std::int64_t step = 0;
    for (std::int64_t first = 0; first < features; first += 32)
      for (int t = 0; t < bits_; ++t, ++step) {
        const std::int64_t end = std::min(features - first, std::int64_t{32});
        std::uint32_t word = 0;
        for (std::int64_t f = 0; row != nullptr && f < end; ++f)
          word |= static_cast<std::uint32_t>(row[first + f] > t) << f;
        to[step * kPanel + r] = as_float(static_cast<std::int32_t>(word));
      }
  }
}

float TripleRows::larger(float a, float b) const {
  return bits_ > 0 ? as_float(as_bits(a) | as_bits(b)) : std::max(a, b);
}

float TripleRows::most_of(double sum) const {
  if (points_->wide || sum < kCoarse)
    return std::numeric_limits<float>::infinity();
  const double by = (1.0 + roundings_ * 0x1p-23) * (1.0 + 0x1p-20);
  return float_above(scaled(sum) * by);
}

ApexPass::ApexPass(const TripleRows& rows)
    : rows_(rows),
      pair_sum_(rows.num_panels() * kPanel),
      larger_(rows.num_panels() * kPanel * rows.steps()),
      block_(kPanels * kPanels * kPanel * kPanel) {}

/// Sums four rows at a time, although only the apex is needed: this is little
/// work compared with the triples.
void ApexPass::enter(std::int64_t apex, const TripleOwners& owners) {
  apex_ = apex;
  first_panel_ = owners.all() ? (apex + 1) / kPanel : 0;
  const std::int64_t own = apex_ / kPanel, row = apex_ % kPanel;
  const std::int64_t first = row - row % TripleTile::rows;
  float sums[TripleTile::size];
  for (std::int64_t p = first_panel_; p < rows_.num_panels(); ++p) {
    for (std::int64_t f = 0; f < rows_.steps(); f += TripleRows::kDepth)
      rows_.kernels().accumulate(
          rows_.panel(own) + f * kPanel + first, rows_.panel(p) + f * kPanel,
          std::min(TripleRows::kDepth, rows_.steps() - f), f > 0, sums);
    std::copy_n(sums + (row - first) * kPanel, kPanel,
                pair_sum_.data() + p * kPanel);
    poll_after(4.0 * static_cast<double>(rows_.steps()));
  }
}

void ApexPass::choose(const TripleOwners& owners, const TripleBound* bound) {
  others_.clear();
  const double own = rows_.points().sums[apex_];
  for (std::int64_t p = first_panel_ * kPanel; p < rows_.size(); ++p) {
    if (!owners.has(apex_, p)) continue;
    if (bound != nullptr) {
      const double both = own + rows_.points().sums[p];
      const double third = std::min(
          rows_.largest_sum(), std::max(bound->third * both, kNearlyEmpty));
      const double most = bound->share * (1.0 + 0x1p-40) * (both + third);
      if (pair_sum_[p] > rows_.most_of(most)) continue;
    }
    others_.push_back(p);
  }
  fill();
}

/// Computes X of the others, in the points' own panels if nearly all are among
/// them.
void ApexPass::fill() {
  const std::int64_t steps = rows_.steps();
  const std::int64_t there = rows_.size() - first_panel_ * kPanel;
  const std::int64_t count = static_cast<std::int64_t>(others_.size());
  const float* const own = rows_.panel(apex_ / kPanel) + apex_ % kPanel;
  const bool in_place = 8 * count > 7 * there;
  panels_ = in_place ? rows_.num_panels() - first_panel_
                     : (count + kPanel - 1) / kPanel;
  const std::size_t size = static_cast<std::size_t>(panels_ * kPanel);
  at_.assign(size, -1);
  most_.assign(size, 0.0f);
  most_of_row_.assign(size, 0.0f);
  std::size_t next = 0;
  for (const std::int64_t place : others_) {
    const std::size_t x =
        in_place ? static_cast<std::size_t>(place - first_panel_ * kPanel)
                 : next++;
    at_[x] = place;
    most_[x] = rows_.most(place);
    most_of_row_[x] = rows_.most(apex_) + rows_.most(place);
  }
  if (in_place) {
    for (std::int64_t p = 0; p < panels_; ++p) {
      rows_.kernels().larger(own, rows_.panel(first_panel_ + p), steps,
                             larger_.data() + p * kPanel * steps);
      poll_after(static_cast<double>(steps) * 2.0);
    }
    return;
  }
  for (std::int64_t p = 0; p < panels_; ++p) {
    float* const to = larger_.data() + p * kPanel * steps;
    for (std::int64_t r = 0; r < kPanel; ++r) {
      const std::int64_t place = at_[static_cast<std::size_t>(p * kPanel + r)];
      const float* const from = rows_.panel(place < 0 ? 0 : place / kPanel) +
                                (place < 0 ? 0 : place % kPanel);
      for (std::int64_t f = 0; f < steps; ++f)
        to[f * kPanel + r] =
            place < 0 ? 0.0f : rows_.larger(own[f * kPanel], from[f * kPanel]);
    }
    poll_after(static_cast<double>(steps) * 20.0);
  }
}

void ApexPass::sum_block(std::int64_t row_panel, std::int64_t row_end,
                         std::int64_t column_panel, std::int64_t column_end) {
  constexpr std::int64_t groups = kPanel / TripleTile::rows;
  const std::int64_t steps = rows_.steps();
  for (std::int64_t f = 0; f < steps; f += TripleRows::kDepth) {
    const std::int64_t depth = std::min(TripleRows::kDepth, steps - f);
    for (std::int64_t p = row_panel; p < row_end; ++p) {
      if (has_rows_[static_cast<std::size_t>(p)] == 0) continue;
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t q = std::max(p, column_panel); q < column_end; ++q) {
          rows_.kernels().accumulate(
              larger_.data() + (p * steps + f) * kPanel + g * TripleTile::rows,
              larger_.data() + (q * steps + f) * kPanel, depth, f > 0,
              sums_of(p - row_panel, g, q - column_panel));
          comparisons_ += static_cast<double>(TripleTile::size * depth) *
                          rows_.features_a_step();
        }
    }
  }
}

int triple_threads(const Request& request, const PreparedPoints& points) {
  const double n = static_cast<double>(points.size());
  return useful_threads(request.num_threads,
                        n * n * static_cast<double>(points.num_features) / 16);
}

}  // namespace cpu
}  // namespace fsknn
