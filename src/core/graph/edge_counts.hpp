#pragma once

// How many of several graphs of the same points have each edge.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/numbers.hpp"

namespace fsknn {

/// Graphs come one after another as matrices of neighbours. What is kept of
/// them is a small table for each row, of the points that were its neighbours:
/// edges that return take no more memory, and one that can't be in `least` of
/// the graphs any more gives its place back.
class EdgeCounts {
 public:
  /// rows: whose neighbours; k: in a row. num_graphs: how many there will be,
  /// of which others may count some. least: in fewer, an edge is told of only
  /// where it is watched; above num_graphs: no others are.
  EdgeCounts(std::int64_t rows, std::int64_t k, std::int64_t num_graphs,
             std::int64_t least);

  /// An edge that is told of whatever its count. Before the first graph.
  void watch(AnswerRow row, PointId to);

  /// Where the indices of the next graph go: [rows x k], column-major, from 1,
  /// 0 where there is no neighbour.
  std::int32_t* next() { return lists_.data() + waiting_ * rows_ * k_; }
  /// They are there.
  void take(int num_threads);
  /// All that were taken are counted: before what follows is asked.
  void finish(int num_threads);

  std::int64_t count(AnswerRow row, PointId to) const;

  /// Edges that are not watched, in order of row, then of point, that are in
  /// `least` graphs, or would be if all graphs that others count had them.
  struct Others {
    std::vector<std::int32_t> row, to, count;
  };
  Others others(int num_threads) const;

 private:
  struct Entry {
    std::int32_t point;  ///< -1: free
    std::uint32_t watched : 1, count : 31;
  };
  /// Of one row: open addressing in a power of two of places, empty at first.
  struct Table {
    std::vector<Entry> places;
    std::int32_t used = 0;
  };
  static std::size_t home(const Table& table, std::int32_t point) {
    // The upper bits of a product by an odd number depend on all of the lower.
    const std::uint32_t mixed =
        static_cast<std::uint32_t>(point) * 0x9E3779B1u >> 7;
    return mixed & (table.places.size() - 1);
  }
  static Entry* find(Table& table, std::int32_t point);
  void add(Table& table, std::int32_t point, bool watched,
           std::int64_t to_come);
  void grow(Table& table, std::int64_t to_come);
  /// Whether an edge that `count` graphs have, of which `to_come` are not
  /// counted yet, can be in enough of them.
  bool may_reach(std::int64_t count, std::int64_t to_come) const {
    return count + to_come >= least_;
  }
  void count_waiting(int num_threads);

  std::int64_t rows_, k_, num_graphs_, least_;
  std::int64_t at_once_;      ///< graphs that wait to be counted together
  std::int64_t waiting_ = 0;  ///< that do
  std::int64_t counted_ = 0;
  Buffer<std::int32_t> lists_;  ///< [graph][k][rows]
  std::vector<Table> tables_;
};

}  // namespace fsknn
