#include "cpu/missing/masked_tables.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/table_numbers.hpp"
#include "cpu/filter/count_words.hpp"
#include "cpu/missing/masked_rounding.hpp"

namespace fsknn {
namespace cpu {

bool masked_tables_filter(const TableTerms& table, std::int64_t num_features) {
  return table.copies > 0.0 &&
         static_cast<double>(num_features) <= kMostTableSamples;
}

MaskedTableRows pack_masked_tables(const MaskedPoints& points,
                                   const TableTerms& table,
                                   std::int64_t num_places, int num_threads,
                                   Progress* progress) {
  const std::int64_t n = points.size(), d = points.num_features;
  const CountWords packing(table);
  MaskedTableRows rows;
  rows.num_places = num_places;
  rows.steps = packing.words(d);
  rows.counts = Buffer<std::int32_t>(num_places * rows.steps);
  rows.known = Buffer<std::int32_t>(num_places * rows.steps);
  rows.counted = Buffer<float>(num_places);
  rows.other = Buffer<float>(num_places);
  const auto pack = [&](std::int64_t place) {
    const std::int64_t at =
        place / Tile::panel * Tile::panel * rows.steps + place % Tile::panel;
    const double* const row = points.row(Place{place});
    double sum = 0.0, samples = 0.0;
    for (std::int64_t step = 0; step < rows.steps; ++step) {
      std::uint32_t counts = 0, known = 0;
      const std::int64_t end = std::min(d, (step + 1) * packing.each());
      for (std::int64_t f = step * packing.each(); f < end; ++f) {
        if (!has_value(row[f])) continue;
        counts |= packing.part(row[f], f);
        known |= packing.part(1.0, f);
        sum += row[f];
        samples += 1.0;
      }
      rows.counts[at + step * Tile::panel] = static_cast<std::int32_t>(counts);
      rows.known[at + step * Tile::panel] = static_cast<std::int32_t>(known);
    }
    const auto weight = [&](int allele) {
      return samples > 0.0
                 ? static_cast<float>(AlleleTable::weight(
                       AlleleTable::frequency(allele, sum, samples, table),
                       table))
                 : 0.0f;
    };
    rows.counted[place] = weight(1);
    rows.other[place] = weight(0);
  };
  const std::int64_t num_panels = num_places / Tile::panel;
  const double operations =
      8.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_panels, useful_threads(num_threads, operations),
             {progress, 0.0, 0.0}, [&] {
               return [&](std::int64_t panel) {
                 const std::int64_t first = panel * Tile::panel;
                 std::fill_n(rows.counts.data() + first * rows.steps,
                             Tile::panel * rows.steps, 0);
                 std::fill_n(rows.known.data() + first * rows.steps,
                             Tile::panel * rows.steps, 0);
                 std::fill_n(rows.counted.data() + first, Tile::panel, 0.0f);
                 std::fill_n(rows.other.data() + first, Tile::panel, 0.0f);
                 for (std::int64_t i = first;
                      i < std::min<std::int64_t>(n, first + Tile::panel); ++i)
                   pack(i);
               };
             });
  return rows;
}

float masked_table_threshold(double distance, const TableTerms& table) {
  // The distance 1 - similarity was rounded once.
  const double least = (1.0 - distance) - 0x1p-50 * (1.0 + std::fabs(distance));
  const double t = least * (table.copies * table.copies / table.multiplier);
  // No entry of a table is larger than this.
  const double most = 2.0 * table.copies * table.copies;
  return rounded_down(std::max(-1.0, std::min(t, most)));
}

void MaskedTables::tile(std::int64_t row, std::int64_t column, int panels,
                        const float* row_threshold,
                        const float* column_threshold, std::uint64_t* keep) {
  const Product product = CountWords(terms_.table).product;
  const auto panel = [](const MaskedTableRows& of,
                        const Buffer<std::int32_t>& words, std::int64_t place) {
    return words.data() + place / Tile::panel * Tile::panel * of.steps +
           place % Tile::panel;
  };
  const auto sums = [&](const Buffer<std::int32_t>& own,
                        const Buffer<std::int32_t>& others, std::int32_t* to) {
    kernels_.accumulate(product, panel(a_, own, row), panel(b_, others, column),
                        panels, a_.steps, to);
  };
  sums(a_.counts, b_.counts, both_);
  sums(a_.counts, b_.known, x_);
  sums(a_.known, b_.counts, y_);
  sums(a_.known, b_.known, n_);
  const float copies = static_cast<float>(terms_.table.copies);
  const float least = static_cast<float>(terms_.min_pairs);
  constexpr float up = 1.0f + kRoundingOfTable;
  const std::int64_t width = panels * Tile::panel;
  for (int r = 0; r < Tile::rows; ++r) {
    const float counted = a_.counted[row + r], other = a_.other[row + r];
    const float t = row_threshold[r];
    keep[r] = 0;
    for (std::int64_t first = 0; first < width; first += Tile::panel) {
      const std::int64_t at = r * Tile::columns + first;
      const float* const w = b_.counted.data() + column + first;
      const float* const v = b_.other.data() + column + first;
      const float* const limit = column_threshold + first;
      std::int32_t passes[Tile::panel];
      for (int c = 0; c < Tile::panel; ++c) {
        const float p = static_cast<float>(both_[at + c]);
        const float x = copies * static_cast<float>(x_[at + c]);
        const float y = copies * static_cast<float>(y_[at + c]);
        const float n = static_cast<float>(n_[at + c]);
        const float with_counted = std::max(p * w[c], (x - p) * v[c]) * counted;
        const float with_other =
            std::max((y - p) * w[c],
                     ((copies * copies) * n - (x + y) + p) * v[c]) *
            other;
        const float bound = std::min(t, limit[c]) * n;
        passes[c] =
            (std::max(with_counted, with_other) * up >= bound) & (n >= least);
      }
      for (int c = 0; c < Tile::panel; ++c)
        keep[r] |= static_cast<std::uint64_t>(passes[c]) << (first + c);
    }
  }
}

}  // namespace cpu
}  // namespace fsknn
