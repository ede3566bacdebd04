#pragma once

// Counts how many of several graphs of the same points have each edge.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/numbers.hpp"

namespace fsknn {

/// Graphs arrive one after another as matrices of neighbours. Each row keeps a
/// small table of the points that were its neighbours. Repeated edges take no
/// more memory, and an edge that can no longer be in `least` of the graphs
/// frees its entry.
class EdgeCounts {
 public:
  /// rows, k: size of a matrix of neighbours. num_graphs: the total number of
  /// graphs, some of which other objects may count. least: edges in fewer
  /// graphs are reported only if they are watched. If it exceeds num_graphs,
  /// only watched edges are.
  EdgeCounts(std::int64_t rows, std::int64_t k, std::int64_t num_graphs,
             std::int64_t least);

  /// Reports an edge whatever its count. Call it before the first graph.
  void watch(AnswerRow row, PointId to);

  /// The memory for the indices of the next graph: [rows x k], column-major,
  /// from 1, or 0 if there is no neighbour.
  std::int32_t* next() { return lists_.data() + waiting_ * rows_ * k_; }
  /// Takes the indices after they were written.
  void take(int num_threads);
  /// Counts all graphs that were taken; required before the queries below.
  void finish(int num_threads);

  std::int64_t count(AnswerRow row, PointId to) const;

  /// Unwatched edges, in order of row, then of point. They are in `least`
  /// graphs, or would be if all graphs that others count had them.
  struct Others {
    std::vector<std::int32_t> row, to, count;
  };
  Others others(int num_threads) const;

 private:
  struct Entry {
    std::int32_t point;  ///< -1: free
    std::uint32_t watched : 1, count : 31;
  };
  /// The table of one row: open addressing; the size is a power of two, or 0.
  struct Table {
    std::vector<Entry> places;
    std::int32_t used = 0;
  };
  static std::size_t home(const Table& table, std::int32_t point) {
    // The upper bits of a product with an odd number depend on all lower bits.
    const std::uint32_t mixed =
        static_cast<std::uint32_t>(point) * 0x9E3779B1u >> 7;
    return mixed & (table.places.size() - 1);
  }
  static Entry* find(Table& table, std::int32_t point);
  void add(Table& table, std::int32_t point, bool watched,
           std::int64_t to_come);
  void grow(Table& table, std::int64_t to_come);
  /// Whether an edge of `count` graphs can reach `least_` when `to_come` graphs
  /// are not yet counted.
  bool may_reach(std::int64_t count, std::int64_t to_come) const {
    return count + to_come >= least_;
  }
  void count_waiting(int num_threads);

  std::int64_t rows_, k_, num_graphs_, least_;
  std::int64_t at_once_;      ///< graphs that are counted together
  std::int64_t waiting_ = 0;  ///< graphs not yet counted
  std::int64_t counted_ = 0;
  Buffer<std::int32_t> lists_;  ///< [graph][k][rows]
  std::vector<Table> tables_;
};

}  // namespace fsknn
