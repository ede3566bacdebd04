#pragma once

// One search of points against points: filter, exact step and lists. The points
// may be in memory all at once, or in blocks, a few at a time.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/lists.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/prepared_pairs.hpp"

namespace fsknn {
namespace cpu {

class Search {
 public:
  /// num_places: the number of points (or queries) whose neighbours are found.
  /// Each has one list, or one for each group. `scale` must have its slack. It
  /// and the other references must outlive the search.
  Search(const Request& request, const Plan& plan, const Kernels& kernels,
         const DistanceRule& rule, const FilterScale& scale, bool is_graph,
         std::int64_t num_places, Progress* progress);

  /// Two blocks whose points are compared; they must outlive the search.
  struct Meeting {
    const PointBlock* rows;
    const PointBlock* columns;
    bool sorted() const {
      return rows->spans != nullptr && columns->spans != nullptr;
    }
  };

  /// Sets the limit of a row, given by its place in the block: no point beyond
  /// it is a neighbour. Call it before anything else. -infinity: the row takes
  /// no neighbours.
  void set_limit(const PointBlock& rows, std::int64_t at, double limit);

  /// Sets a first threshold for every row of each meeting, before the row is
  /// compared. It comes from some chunks of the columns: a random sample of the
  /// block, or the points with the nearest keys.
  ///   certain: k of these points are at most that far;
  ///   likely: so many of them are that, with high probability, k of all
  ///     columns are. Then fill_short() must come last;
  ///   hasty: likely, with the expected number, which fails for about half of
  ///     the rows (a testing aid).
  /// from, to: shares of the whole work.
  enum class Seeds { certain, likely, hasty };
  void seed(const std::vector<Meeting>& meetings, double from, double to,
            Seeds seeds = Seeds::certain);

  /// Recomputes, by the exact step against all columns, the rows with fewer
  /// than k neighbours, whose first threshold was too low. Returns their
  /// number.
  std::int64_t fill_short(const Meeting& meeting);

  /// No neighbour of a row is farther than this.
  double limit(const PointBlock& rows, std::int64_t at) const {
    return lists_.limit(list_of(rows, at, rows));
  }

  /// Compares all pairs of the two blocks of each meeting, on all threads
  /// together. In a graph either point is a neighbour of the other, and a block
  /// may be compared with itself.
  void meet(const std::vector<Meeting>& meetings, double from, double to);

  /// The same for all points of a graph, except pairs within one group.
  void meet_other_groups(const PointBlock& points, double from, double to);

  /// Writes the lists, and correlations where `columns` is given. place: the
  /// place of each row's list; -1: the row was skipped. Returns whether all
  /// distances are within range.
  bool emit(const Neighbours& out, const std::vector<std::int32_t>& place,
            const PreparedPoints* rows, const PreparedPoints* columns);

  /// The sorted neighbours of a row, given by its place in the block, among the
  /// columns. Call it once, after all pairs were compared.
  struct Found {
    const double* distance;
    const std::int32_t* index;
    std::int64_t size;
  };
  Found found_of(const PointBlock& rows, std::int64_t at,
                 const PointBlock& columns);

  const PassCounts& counts() const { return counts_; }

 private:
  class Sink;

  static std::int64_t lists_a_row(const Request& request) {
    const PointGroups* const groups = request.groups.get();
    return groups == nullptr || groups->lists() == PointGroups::Lists::together
               ? 1
               : groups->count();
  }

  std::int64_t chunks_of(const PointBlock& block) const {
    return (block.size() + plan_.chunk_size - 1) / plan_.chunk_size;
  }
  /// The place of a row's list for the columns.
  Place list_of(const PointBlock& rows, std::int64_t row,
                const PointBlock& columns) const {
    return {columns.list * num_places_ + rows.among_all(rows.place(row)).value};
  }
  /// Whether the points of a block are compared with each other.
  bool among_themselves(const PointBlock& rows,
                        const PointBlock& columns) const {
    return is_graph_ && rows.filter == columns.filter;
  }
  /// The stored number of a row's list that has this number in its answer.
  std::int64_t stored_list(AnswerRow row, std::int64_t number) const {
    const PointGroups* const groups = request_.groups.get();
    if (groups == nullptr || groups->lists() != PointGroups::Lists::others)
      return number;
    return number + (number >= groups->of_row(row) ? 1 : 0);
  }
  void set_threshold(Place list);
  /// The point that is the same as a query; -1: none.
  PointId self_of(AnswerRow row) const {
    return {request_.query_self.empty()
                ? -1
                : request_.query_self[static_cast<std::size_t>(row.value)]};
  }
  /// The number of points that must be seen for k neighbours: a query may
  /// itself be one of the points.
  std::int64_t num_seeds() const {
    return request_.k + (request_.query_self.empty() ? 0 : 1);
  }
  /// The `count` first chunks of the columns in the order of their distance
  /// from a chunk of the rows, among `chunks` of them.
  static std::vector<std::int64_t> nearest_chunks(const Meeting& meeting,
                                                  std::int64_t split,
                                                  std::int64_t count,
                                                  std::int64_t chunks);
  void limit_chunks(const PointBlock& block, const PointBlock& others) const;
  static std::int64_t likely_rank(std::int64_t k, std::int64_t seen,
                                  std::int64_t all, Seeds seeds);
  struct Sample;
  class Part;
  Sample sample_of(const Meeting& meeting, Seeds seeds) const;
  void seed_split(const Sample& sample, std::int64_t split,
                  std::vector<float>& best);
  void emit_list(const Neighbours& out, std::int64_t first, Place list,
                 std::atomic<bool>* beyond);

  const Request& request_;
  const MetricEntry& metric_;
  const Plan& plan_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  const FilterScale& scale_;
  const bool is_graph_;
  const std::int64_t num_places_;
  bool other_groups_ = false;  ///< pairs within one group are omitted
  Progress* progress_;
  Thresholds thresholds_;
  NeighbourLists lists_;
  std::unique_ptr<std::atomic<std::int32_t>[]> threshold_;  ///< [lists]
  PassCounts counts_;
};

}  // namespace cpu
}  // namespace fsknn
