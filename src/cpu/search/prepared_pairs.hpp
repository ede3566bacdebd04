#pragma once

// Pairs of prepared points in a pass (pass.hpp): the filter of their metric and
// the contract's sums.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/filter/second_test.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/exact_rows.hpp"
#include "cpu/search/keys.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {

/// All points, or a block of them, in the exact form and in the filter's.
struct PointBlock {
  const PreparedPoints* points = nullptr;
  const FilterRows* filter = nullptr;
  Place first_place = {0};  ///< the place, among all, at which the block starts
  PointId first_id = {0};   ///< the number of the block's point 0
  /// The places of some of the points, in the order of `filter`; null: all
  /// points, in their order.
  const std::vector<std::int32_t>* place_at = nullptr;
  /// The number of these points' list among the lists of a row (see
  /// PointGroups).
  std::int64_t list = 0;
  /// Set if the points are in the order of their keys or of their tree, as in
  /// `filter`; else null.
  ChunkSpans* spans = nullptr;
  /// Labels of the tiles in that order; null: all pairs are wanted.
  const TileLabels* labels = nullptr;

  std::int64_t size() const {
    return place_at != nullptr ? static_cast<std::int64_t>(place_at->size())
                               : points->size();
  }
  /// The place of the `at`-th point (from 0) in `filter`.
  Place place(std::int64_t at) const {
    return {place_at != nullptr ? (*place_at)[static_cast<std::size_t>(at)]
                                : at};
  }
  /// The point at a place of the points.
  PointId id(Place place) const {
    return {first_id.value + points->order.id_at(place).value};
  }
  /// The same place, counted among the places of all blocks.
  Place among_all(Place place) const {
    return {first_place.value + place.value};
  }
};

/// Prunes tiles of a chunk by the keys or boxes of their points.
class ChunkKeys {
 public:
  ChunkKeys(const Kernels& kernels, const PointBlock& rows,
            const PointBlock& columns, const FilterForm& form,
            std::int64_t chunk_size)
      : kernels_(kernels) {
    if (rows.spans == nullptr || columns.spans == nullptr ||
        form.reach == nullptr)
      return;
    rows_ = rows.spans;
    columns_ = columns.spans;
    row_labels_ = rows.labels;
    column_labels_ = columns.labels;
    num_panels_ = chunk_size / Tile::rows / Tile::panel + 2;
    row_limit_.resize(static_cast<std::size_t>(num_panels_ * Tile::panel));
    mirrored_.resize(static_cast<std::size_t>(2 * rows_->tiles().width()));
    near_.resize(
        static_cast<std::size_t>(chunk_size / Tile::columns * num_panels_));
  }

  bool known() const { return rows_ != nullptr; }

  /// Whether the chunk may have a near pair, by the limits that were set last.
  bool may_meet(const Chunk& at) const {
    const std::int64_t row = rows_->chunk_at(at.row0);
    const std::int64_t column = columns_->chunk_at(at.column0);
    return !rows_->tiles().farther(
        (*rows_)[row], (*columns_)[column],
        std::max(rows_->limit(row), columns_->limit(column)));
  }
  /// Looks at the chunk's tiles.
  bool any_near(const Chunk& at, const FilterScale& scale,
                const std::int32_t* row_threshold,
                const std::int32_t* column_threshold) {
    const KeyTiles& tiles = rows_->tiles();
    const std::int64_t tile0 = at.row0 / Tile::rows;
    first_panel_ = tile0 / Tile::panel;
    shift_ = tile0 % Tile::panel;
    float most = -HUGE_VALF;
    for (std::int64_t r = 0; r < at.num_rows; r += Tile::rows) {
      const float limit =
          limit_of(tiles, scale, row_threshold + r,
                   std::min<std::int64_t>(Tile::rows, at.num_rows - r));
      row_limit_[static_cast<std::size_t>(shift_ + r / Tile::rows)] = limit;
      most = std::max(most, limit);
    }
    rows_->set_limit(rows_->chunk_at(at.row0), most);
    most = -HUGE_VALF;
    bool any = false;
    for (std::int64_t c = 0; c < at.num_columns; c += Tile::columns) {
      const float limit =
          limit_of(tiles, scale, column_threshold + c,
                   std::min<std::int64_t>(Tile::columns, at.num_columns - c));
      most = std::max(most, limit);
      any |= test_column(at, c, limit);
    }
    if (!at.diagonal) columns_->set_limit(columns_->chunk_at(at.column0), most);
    return any;
  }
  /// As PairsDefaults::next_near().
  std::int64_t next_near(std::int64_t r, std::int64_t end,
                         std::int64_t c) const {
    const std::uint32_t* const near = near_of(c);
    const std::int64_t last = shift_ + (end - 1) / Tile::rows;
    for (std::int64_t tile = shift_ + r / Tile::rows; tile <= last;
         tile = (tile / Tile::panel + 1) * Tile::panel) {
      const std::uint32_t from = near[tile / Tile::panel] >> tile % Tile::panel;
      if (from != 0) return (tile + __builtin_ctz(from) - shift_) * Tile::rows;
    }
    return end;
  }

 private:
  const std::uint32_t* near_of(std::int64_t c) const {
    return near_.data() + c / Tile::columns * num_panels_;
  }
  bool test_column(const Chunk& at, std::int64_t c, float limit) {
    const KeyTiles& tiles = rows_->tiles();
    const KeyTiles& others = columns_->tiles();
    std::uint32_t* const near = near_.data() + c / Tile::columns * num_panels_;
    const std::int64_t end =
        shift_ + (at.num_rows + Tile::rows - 1) / Tile::rows;
    std::uint32_t any = 0;
    if (tiles.kind() == KeyKind::box && tiles.rule().has_mirrored())
      others.mirror_column_box(at.column0 + c, mirrored_.data());
    for (std::int64_t t = 0; t < end; t += Tile::panel) {
      std::uint32_t found = 0;
      if (tiles.kind() == KeyKind::box) {
        const auto near_box = [&](const float* other) {
          return kernels_.near_boxes(
              tiles.rule().gaps,
              tiles.row_boxes(first_panel_ + t / Tile::panel),
              row_limit_.data() + t, other, limit, tiles.width());
        };
        if (tiles.rule().has_plain())
          found = near_box(others.column_box(at.column0 + c));
        if (tiles.rule().has_mirrored()) found |= near_box(mirrored_.data());
      } else {
        for (std::int64_t b = 0; b < Tile::panel; ++b) {
          const std::int64_t r = (t + b - shift_) * Tile::rows;
          if (r < 0 || r >= at.num_rows) continue;
          const float most =
              std::max(row_limit_[static_cast<std::size_t>(t + b)], limit);
          found |=
              static_cast<std::uint32_t>(!farther(
                  tiles.kind(), tiles.rows(at.row0 + r),
                  others.columns(at.column0 + c), static_cast<double>(most)))
              << b;
        }
      }
      if (row_labels_ != nullptr && column_labels_ != nullptr)
        found &= ~same_label(column_labels_->column(at.column0 + c),
                             row_labels_->rows(first_panel_ + t / Tile::panel));
      // The first and the last panel may begin, or end, outside the chunk.
      if (t < shift_) found &= ~0u << shift_;
      if (end - t < Tile::panel) found &= (1u << (end - t)) - 1;
      near[t / Tile::panel] = found;
      any |= found;
    }
    return any != 0;
  }

  /// A bit for each of 16 tiles with this label.
  static std::uint32_t same_label(std::int32_t label,
                                  const std::int32_t* labels) {
    if (label < 0) return 0;
    std::uint32_t same = 0;
    for (int b = 0; b < Tile::panel; ++b)
      same |= static_cast<std::uint32_t>(labels[b] == label) << b;
    return same;
  }

  const Kernels& kernels_;
  ChunkSpans* rows_ = nullptr;
  ChunkSpans* columns_ = nullptr;
  const TileLabels* row_labels_ = nullptr;
  const TileLabels* column_labels_ = nullptr;
  std::int64_t num_panels_ = 0, first_panel_ = 0, shift_ = 0;
  std::vector<float> row_limit_;  ///< [tiles of rows], from first_panel_ on
  std::vector<float> mirrored_;   ///< [width][2]: a mirrored box of columns
  /// [tiles of columns][panels]: a bit for each tile of rows
  std::vector<std::uint32_t> near_;
};

class PreparedPairs : public PairsDefaults {
 public:
  using Threshold = std::int32_t;
  static constexpr int kRows = Tile::rows;

  PreparedPairs(const Kernels& kernels, Accumulation accumulation,
                const FilterScale& scale, const PointBlock& rows,
                const PointBlock& columns, std::int64_t chunk_size)
      : kernels_(kernels),
        accumulation_(accumulation),
        scale_(scale),
        form_(*scale.form),
        keys_(kernels, rows, columns, form_, chunk_size),
        a_(*rows.filter),
        b_(*columns.filter),
        num_rows_(rows.size()),
        num_columns_(columns.size()),
        padded_(columns.points->padded),
        tile_cost_(fsknn::cpu::tile_cost(a_.steps)),
        second_test_(kernels, a_, b_),
        rows_(*rows.points, rows.place_at, chunk_size),
        columns_(*columns.points, columns.place_at, chunk_size) {}

  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t num_columns() const { return num_columns_; }
  bool has_filter() const { return form_.numbers != FilterNumbers::none; }
  Threshold keep_none() const { return form_.keep_none; }
  double tile_cost() const { return tile_cost_; }

  void enter(const Chunk& at) {
    rows_.move_to(at.row0);
    columns_.move_to(at.column0);
  }

  bool may_meet(const Chunk& at) const {
    return !keys_.known() || keys_.may_meet(at);
  }
  bool any_near(const Chunk& at, const Threshold* row_threshold,
                const Threshold* column_threshold) {
    return !keys_.known() ||
           keys_.any_near(at, scale_, row_threshold, column_threshold);
  }
  std::int64_t next_near(std::int64_t r, std::int64_t end,
                         std::int64_t c) const {
    return keys_.known() ? keys_.next_near(r, end, c) : r;
  }

  void tile(const Chunk& at, std::int64_t r, std::int64_t c, int panels,
            const Threshold* row_threshold, const Threshold* column_threshold,
            std::uint64_t* keep) {
    const std::int64_t row = at.row0 + r, column = at.column0 + c;
    kernels_.accumulate(form_.product, a_.row(row), b_.panel(column), panels,
                        a_.steps, tile_);
    kernels_.test(form_.test, tile_, panels, a_.side(row_threshold + r, row),
                  b_.side(column_threshold + c, column), keep);
  }

  /// Notes that a pair of the last tile is a hit.
  void hit(const Chunk& at, const Pair& pair, std::int64_t r, std::int64_t c) {
    if (form_.exact_sum == nullptr) return;
    found_.push_back(
        form_.exact_sum(tile_[(pair.row - r) * Tile::columns + pair.column - c],
                        a_.side(nullptr, at.row0 + pair.row),
                        b_.side(nullptr, at.column0 + pair.column)));
  }

  void look_again(const Chunk& at, const Threshold* row_threshold,
                  const Threshold* column_threshold, std::vector<Pair>& hits) {
    second_test_.drop(at.row0, at.column0, row_threshold, column_threshold,
                      hits);
  }

  void exact(const std::vector<Pair>& hits, double* sums) {
    if (!found_.empty()) {
      std::copy(found_.begin(), found_.end(), sums);
      found_.clear();
      return;
    }
    pairs_.resize(hits.size());
    for (std::size_t h = 0; h < hits.size(); ++h) {
      pairs_[h] = {rows_.need(hits[h].row), columns_.need(hits[h].column)};
      poll_after(10.0);
    }
    exact_in_turns(kernels_, accumulation_, rows_.rows(), columns_.rows(),
                   padded_, pairs_.data(),
                   static_cast<std::int64_t>(pairs_.size()), sums);
  }
  static constexpr bool has(double) { return true; }

 private:
  const Kernels& kernels_;
  const Accumulation accumulation_;
  const FilterScale& scale_;
  const FilterForm& form_;
  ChunkKeys keys_;
  const FilterRows& a_;
  const FilterRows& b_;
  const std::int64_t num_rows_, num_columns_, padded_;
  const double tile_cost_;
  SecondTest second_test_;
  ChunkRows rows_, columns_;
  std::vector<Pair> pairs_;    ///< hits, by the numbers of exact rows
  std::vector<double> found_;  ///< the hits' sums, if the filter's are exact
  alignas(64) std::int32_t tile_[Tile::rows * Tile::columns];
};

}  // namespace cpu
}  // namespace fsknn
