#pragma once

// A pass over all pairs of points with missing values for the searches among
// them: chunk by chunk, first the filter, then the exact step.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/base/progress.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/request.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/source.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/count_words.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/missing/masked_filter.hpp"
#include "cpu/missing/masked_tables.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {

/// The prepared points and queries (null: the graph of the points).
struct MaskedWork {
  MaskedWork(const Request& asked, const RowSource& points,
             const RowSource* queries, Progress* progress);
  MaskedWork(const MaskedWork&) = delete;
  MaskedWork& operator=(const MaskedWork&) = delete;

  const MaskedPoints& rows() const { return symmetric ? columns : own_rows; }
  bool empty() const { return rows().size() == 0 || columns.size() == 0; }
  /// The work must not be empty.
  Plan plan() const;

  Request request;  ///< as given, with no more threads than are useful
  const MaskedRule rule;
  const Kernels& kernels;
  const bool symmetric;
  MaskedPoints columns;
  /// Takers get the similarities of tables of alleles, not their distances.
  bool takes_similarities = false;

 private:
  MaskedPoints own_rows;
};

/// The rows of the filter: of products in two steps, or of tables of alleles.
struct MaskedSideRows {
  MaskedFilterRows products;
  MaskedTableRows tables;
};

/// Pairs of points with missing values in a pass (pass.hpp): their filter, and
/// their values from a MaskedRule.
class MaskedPairs : public PairsDefaults {
 public:
  using Threshold = float;  ///< a similarity
  static constexpr int kRows = CommonTile::rows;

  MaskedPairs(const MaskedWork& work, const MaskedSideRows& rows,
              const MaskedSideRows& columns, bool filtered)
      : work_(work),
        a_(rows.products),
        b_(columns.products),
        tables_(work.kernels, work.rule.terms(), rows.tables, columns.tables),
        filtered_(filtered) {}

  std::int64_t num_rows() const { return work_.rows().size(); }
  std::int64_t num_columns() const { return work_.columns.size(); }
  bool has_filter() const { return filtered_; }
  static constexpr float keep_none() {
    return std::numeric_limits<float>::infinity();
  }
  static constexpr float keep_all() { return -keep_none(); }
  double tile_cost() const {
    return work_.rule.has_tables() ? tables_.tile_cost()
                                   : 2.0 * fsknn::cpu::tile_cost(a_.steps);
  }

  void enter(const Chunk& at) {
    row0_ = at.row0;
    column0_ = at.column0;
  }
  void tile(const Chunk& at, std::int64_t row, std::int64_t column, int panels,
            const float* row_threshold, const float* column_threshold,
            std::uint64_t* keep);
  static void hit(const Chunk&, const Pair&, std::int64_t, std::int64_t) {}
  void exact(const std::vector<Pair>& hits, double* values) const;
  static bool has(double value) { return has_value(value); }

 private:
  static std::uint64_t wanted(const Chunk& at, std::int64_t row,
                              std::int64_t column);
  bool may_pass(const Chunk& at, std::int64_t row, std::int64_t column,
                int panels, const float* row_threshold,
                const float* column_threshold, std::uint64_t* keep);
  void refine(const Chunk& at, std::int64_t row, std::int64_t column,
              int panels, const float* row_threshold,
              const float* column_threshold, std::uint64_t* keep);
  bool has_short_lists(std::int64_t row, std::int64_t column, int panels) const;
  bool stays(const MaskedPair& pair, float row_threshold,
             float column_threshold) const;

  const MaskedWork& work_;
  const MaskedFilterRows& a_;
  const MaskedFilterRows& b_;
  MaskedTables tables_;
  const bool filtered_;
  std::int64_t row0_ = 0, column0_ = 0;
  alignas(64) std::int32_t tile_[CommonTile::rows * Tile::columns];
  alignas(64) CommonTile common_ = {};
};

/// Each row has a threshold, a distance. Pairs beyond the thresholds of both
/// their rows (for queries: of the row) may be dropped.
class MaskedPass {
 public:
  /// Initially no pair is filtered. filtered: whether the filter is worth
  /// packing the rows.
  MaskedPass(const MaskedWork& work, const Plan& plan, bool filtered,
             Progress* progress);
  /// May be called by any thread, at any time.
  void set_threshold(Place row, double distance) {
    if (!filtered_) return;
    threshold_[static_cast<std::size_t>(row.value)].store(
        threshold_of(row, distance), std::memory_order_relaxed);
  }
  /// make_taker() makes each thread's taker. take(row, column, value) gets each
  /// pair that has a value (MaskedRule::value(), unless
  /// MaskedWork::takes_similarities) once, by its places. merge() is called at
  /// the end.
  template <class MakeTaker>
  void run(const ProgressRange& progress_range, MakeTaker make_taker) {
    const bool symmetric = work_.symmetric;
    counts_.add(run_pass(
        {plan_.num_splits, plan_.chunks_per_split, symmetric},
        work_.request.num_threads, progress_range, [&] {
          return ChunkPass<MaskedPairs, Sink<decltype(make_taker())>>(
              plan_.chunk_size, symmetric,
              [&] {
                return MaskedPairs(work_, row_filter(), column_filter_,
                                   filtered_);
              },
              [&] { return Sink<decltype(make_taker())>(*this, make_taker); });
        }));
  }

  const PassCounts& counts() const { return counts_; }
  FilterNumbers numbers() const {
    if (!filtered_) return FilterNumbers::none;
    return work_.rule.has_tables()
               ? CountWords(work_.rule.terms().table).numbers
               : FilterNumbers::int16;
  }

 private:
  template <class Taker>
  class Sink : public SinkDefaults {
   public:
    static constexpr std::size_t kHits = 2048;

    template <class MakeTaker>
    Sink(const MaskedPass& pass, MakeTaker make_taker)
        : s_(pass), taker_(make_taker()) {}

    bool enter(const Chunk& at, float* row_threshold, float* column_threshold) {
      at_ = at;
      row_threshold_ = row_threshold;
      column_threshold_ = column_threshold;
      fill(Place{at.row0}, at.num_rows, row_threshold);
      fill(Place{at.column0}, s_.work_.symmetric ? at.num_columns : 0,
           column_threshold);
      return true;
    }

    void take(const Pair& hit, double value) {
      const Place row = {at_.row0 + hit.row};
      const Place column = {at_.column0 + hit.column};
      taker_.take(row, column, value);
      // The thresholds may have become stricter.
      row_threshold_[hit.row] = s_.threshold(row);
      if (s_.work_.symmetric)
        column_threshold_[hit.column] = s_.threshold(column);
    }

    void merge() { taker_.merge(); }

   private:
    void fill(Place first, std::int64_t count, float* to) {
      std::fill_n(to, s_.plan_.chunk_size, MaskedPairs::keep_none());
      for (std::int64_t p = 0; p < count; ++p)
        to[p] = s_.threshold(Place{first.value + p});
    }

    const MaskedPass& s_;
    Taker taker_;
    Chunk at_ = {};
    float* row_threshold_ = nullptr;
    float* column_threshold_ = nullptr;
  };

  const MaskedSideRows& row_filter() const {
    return work_.symmetric ? column_filter_ : row_filter_;
  }
  float threshold_of(Place row, double distance) const;
  float threshold(Place row) const {
    return threshold_[static_cast<std::size_t>(row.value)].load(
        std::memory_order_relaxed);
  }

  const MaskedWork& work_;
  const Plan& plan_;
  const bool filtered_;
  MaskedUnits units_;  ///< for filtered differences
  std::unique_ptr<std::atomic<float>[]> threshold_;  ///< similarities
  MaskedSideRows column_filter_, row_filter_;
  PassCounts counts_;
};

}  // namespace cpu
}  // namespace fsknn
