#pragma once

// Pairs of prepared points in a pass (pass.hpp): the filter of their metric and
// the contract's sums.

#include <algorithm>
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
  /// Set if the points are in the order of their keys, as in `filter`; else
  /// null.
  const SortedPoints* sorted = nullptr;

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

/// Prunes tiles of a chunk by the keys of its points.
class ChunkKeys {
 public:
  ChunkKeys(const PointBlock& rows, const PointBlock& columns,
            const FilterForm& form, std::int64_t chunk_size) {
    if (rows.sorted == nullptr || columns.sorted == nullptr ||
        form.reach == nullptr)
      return;
    rows_ = &rows.sorted->tiles();
    columns_ = &columns.sorted->tiles();
    row_reach_.resize(static_cast<std::size_t>(chunk_size / Tile::rows));
    column_reach_.resize(static_cast<std::size_t>(chunk_size / Tile::columns));
  }

  bool known() const { return rows_ != nullptr; }

  bool any_near(const Chunk& at, const FilterScale& scale,
                const std::int32_t* row_threshold,
                const std::int32_t* column_threshold) {
    const double reach =
        std::max(farthest(scale, row_threshold, at.num_rows, Tile::rows,
                          row_reach_.data()),
                 farthest(scale, column_threshold, at.num_columns,
                          Tile::columns, column_reach_.data()));
    return !apart(rows_->kind(), rows_->of(at.row0, at.num_rows),
                  columns_->of(at.column0, at.num_columns), reach);
  }
  bool is_pruned(const Chunk& at, std::int64_t r, std::int64_t c) const {
    return apart(
        rows_->kind(), rows_->rows(at.row0 + r),
        columns_->columns(at.column0 + c),
        std::max(row_reach_[static_cast<std::size_t>(r / Tile::rows)],
                 column_reach_[static_cast<std::size_t>(c / Tile::columns)]));
  }

 private:
  /// The largest reach of each `size` points, in `reach`, and of all points.
  static double farthest(const FilterScale& scale,
                         const std::int32_t* threshold, std::int64_t count,
                         std::int64_t size, double* reach) {
    double all = -HUGE_VAL;
    for (std::int64_t p = 0; p < count; p += size) {
      double most = -HUGE_VAL;
      for (std::int64_t q = p; q < std::min(count, p + size); ++q)
        most = std::max(most, scale.form->reach(scale, threshold[q]));
      reach[p / size] = most;
      all = std::max(all, most);
    }
    return all;
  }

  const KeyTiles* rows_ = nullptr;
  const KeyTiles* columns_ = nullptr;
  std::vector<double> row_reach_, column_reach_;
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
        keys_(rows, columns, form_, chunk_size),
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

  bool any_near(const Chunk& at, const Threshold* row_threshold,
                const Threshold* column_threshold) {
    return !keys_.known() ||
           keys_.any_near(at, scale_, row_threshold, column_threshold);
  }
  bool is_pruned(const Chunk& at, std::int64_t r, std::int64_t c) const {
    return keys_.known() && keys_.is_pruned(at, r, c);
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
