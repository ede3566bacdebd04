#pragma once

// One search: points met by points, filter, exact step and lists. All points
// may be there at once, or some of them at a time, in blocks.

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
  /// num_places: of all points (queries) whose neighbours are found, each of
  /// which has a list for each group, or one. `scale` must have its slack; it
  /// and the other references must stay.
  Search(const Request& request, const Plan& plan, const Kernels& kernels,
         const DistanceRule& rule, const FilterScale& scale, bool is_graph,
         std::int64_t num_places, Progress* progress);

  /// Two blocks whose points are met; they must stay.
  struct Meeting {
    const PointBlock* rows;
    const PointBlock* columns;
    bool sorted() const {
      return rows->sorted != nullptr && columns->sorted != nullptr;
    }
  };

  /// What is farther than this from a row, by its place in the block, is none
  /// of its neighbours. Before all else; -infinity: it has none.
  void set_limit(const PointBlock& rows, std::int64_t at, double limit);

  /// A first threshold for every row of each meeting, before it is met by any,
  /// from some chunks of the columns, whose points are a random sample of the
  /// block, or those whose keys are nearest.
  ///   certain: k of them are at most that far;
  ///   likely: so many are that k of all columns will be, nearly always. Then
  ///     fill_short() comes last of all;
  ///   hasty: the same of every other row (a testing aid).
  /// from, to: shares of the whole work.
  enum class Seeds { certain, likely, hasty };
  void seed(const std::vector<Meeting>& meetings, double from, double to,
            Seeds seeds = Seeds::certain);

  /// Rows with fewer than k neighbours, since their first threshold was too
  /// low, meet all columns in the exact step. Returns how many these are.
  std::int64_t fill_short(const Meeting& meeting);

  /// No neighbour of a row is farther than this.
  double limit(const PointBlock& rows, std::int64_t at) const {
    return lists_.limit(list_of(rows, at, rows));
  }

  /// All pairs of the two blocks of each meeting, by all threads together. Of a
  /// graph either is a neighbour of the other, and a block may meet itself.
  void meet(const std::vector<Meeting>& meetings, double from, double to);

  /// The same of all points of a graph, where two of one group are no pair.
  void meet_apart(const PointBlock& points, double from, double to);

  /// Writes out the lists, and correlations where `columns` is given. place:
  /// where each row's list stands, -1: the row is left out. Returns whether all
  /// distances are within range.
  bool emit(const Neighbours& out, const std::vector<std::int32_t>& place,
            const PreparedPoints* rows, const PreparedPoints* columns);

  /// What a row has found of the columns, by its place in the block, sorted.
  /// Once, after all pairs were met.
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
  /// Where a row's list of the columns stands.
  Place list_of(const PointBlock& rows, std::int64_t row,
                const PointBlock& columns) const {
    return {columns.list * num_places_ + rows.among_all(rows.place(row)).value};
  }
  /// Whether the points of a block meet each other.
  bool among_themselves(const PointBlock& rows,
                        const PointBlock& columns) const {
    return is_graph_ && rows.filter == columns.filter;
  }
  /// Which of the lists that a row has here comes so many-th in its answer.
  std::int64_t stored_list(AnswerRow row, std::int64_t number) const {
    const PointGroups* const groups = request_.groups.get();
    if (groups == nullptr || groups->lists() != PointGroups::Lists::others)
      return number;
    return number + (number >= groups->of_row(row) ? 1 : 0);
  }
  void set_threshold(Place list);
  /// The point that a row is, where it is a query; -1: none.
  PointId self_of(AnswerRow row) const {
    return {request_.query_self.empty()
                ? -1
                : request_.query_self[static_cast<std::size_t>(row.value)]};
  }
  /// Points to have seen for k that count: a query may be one of them itself.
  std::int64_t num_seeds() const {
    return request_.k + (request_.query_self.empty() ? 0 : 1);
  }
  /// The chunk of the columns whose keys are nearest to a chunk of the rows.
  std::int64_t nearest_chunk(const Meeting& meeting, std::int64_t split) const;
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
  bool apart_ = false;  ///< two points of one group are no pair
  Progress* progress_;
  Thresholds thresholds_;
  NeighbourLists lists_;
  std::unique_ptr<std::atomic<std::int32_t>[]> threshold_;  ///< of lists
  PassCounts counts_;
};

}  // namespace cpu
}  // namespace fsknn
