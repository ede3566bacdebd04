#pragma once

// The treatment of a search's hits; only search.cpp includes this.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cpu/search/search.hpp"

namespace fsknn {
namespace cpu {

/// Offers hits to the lists, whose limits become the thresholds. The hits of
/// one list in a batch are offered together, so that it is found, locked and
/// compared with its threshold once.
class Search::Sink : public SinkDefaults {
 public:
  static constexpr std::size_t kHits = 2048;

  Sink(Search& search, const PointBlock& rows, const PointBlock& columns)
      : s_(search),
        row_(rows, columns, search.plan_.chunk_size),
        column_(columns, rows, search.plan_.chunk_size) {}

  bool enter(const Chunk& at, std::int32_t* row_threshold,
             std::int32_t* column_threshold) {
    const std::int32_t none = s_.thresholds_.keep_none();
    const std::int64_t size = s_.plan_.chunk_size;
    std::fill_n(row_threshold, size, none);
    std::fill_n(column_threshold, size, none);
    row_.enter(s_, at.row0, at.num_rows, row_threshold, true);
    column_.enter(s_, at.column0, at.num_columns, column_threshold,
                  s_.is_graph_);
    return true;
  }

  bool wanted(std::int32_t row, std::int32_t column) const {
    if (!s_.other_groups_) return true;
    return group_of(row_, row) != group_of(column_, column);
  }

  void take(const Pair& hit, double sum) {
    const double distance =
        s_.rule_(sum, row_.sum_of(hit.row), column_.sum_of(hit.column));
    const bool of_row = !(distance > row_.limit(hit.row));
    const bool of_column =
        s_.is_graph_ && !(distance > column_.limit(hit.column));
    if (!of_row && !of_column) return;
    const PointId row_id = row_.id_of(hit.row);
    const PointId column_id = column_.id_of(hit.column);
    if (of_row && !(column_id == s_.self_of(AnswerRow{row_id.value})))
      row_.keep(hit.row, distance, column_id);
    if (of_column) column_.keep(hit.column, distance, row_id);
  }

  void reranked() {
    row_.offer(s_);
    column_.offer(s_);
  }

 private:
  /// The points along one side of a chunk, and the neighbours found for them.
  class Edge {
   public:
    Edge(const PointBlock& block, const PointBlock& others, std::int64_t size)
        : block_(block),
          others_(others),
          limit_(static_cast<std::size_t>(size)),
          end_(static_cast<std::size_t>(size) + 1) {}

    /// look: whether these points take neighbours.
    void enter(const Search& s, std::int64_t first, std::int64_t count,
               std::int32_t* threshold, bool look) {
      first_ = first;
      threshold_ = threshold;
      for (std::int64_t p = 0; p < count; ++p) {
        const std::size_t at = static_cast<std::size_t>(p);
        limit_[at] = -HUGE_VAL;
        if (look) look_up(s, p);
      }
    }
    PointId id_of(std::int32_t at) const {
      return block_.id(block_.place(first_ + at));
    }
    double sum_of(std::int32_t at) const {
      return block_.points->sums[block_.place(first_ + at).value];
    }
    /// The limit of the point's list when it was last read.
    double limit(std::int32_t at) const {
      return limit_[static_cast<std::size_t>(at)];
    }
    void keep(std::int32_t at, double distance, PointId neighbour) {
      kept_.push_back({{distance, neighbour.value}, at});
      ++end_[static_cast<std::size_t>(at) + 1];
    }
    /// Offers everything that was kept, point by point.
    void offer(Search& s) {
      if (kept_.empty()) return;
      // end_[p] is where the offers of point p begin; after the loop, where
      // they end.
      for (std::size_t p = 1; p < end_.size(); ++p) end_[p] += end_[p - 1];
      offers_.resize(kept_.size());
      for (const Kept& one : kept_)
        offers_[static_cast<std::size_t>(
            end_[static_cast<std::size_t>(one.at)]++)] = one.offered;
      std::int32_t begin = 0;
      for (std::size_t p = 0; p < end_.size(); ++p) {
        if (end_[p] > begin) {
          const Place list =
              s.list_of(block_, first_ + static_cast<std::int64_t>(p), others_);
          if (s.lists_.offer_all(list, offers_.data() + begin,
                                 offers_.data() + end_[p])) {
            s.set_threshold(list);
            look_up(s, static_cast<std::int64_t>(p));
          }
        }
        begin = end_[p];
      }
      kept_.clear();
      std::fill(end_.begin(), end_.end(), 0);
    }

   private:
    struct Kept {
      Offered offered;
      std::int32_t at;
    };
    void look_up(const Search& s, std::int64_t at) {
      const Place list = s.list_of(block_, first_ + at, others_);
      threshold_[at] = s.threshold_[static_cast<std::size_t>(list.value)].load(
          std::memory_order_relaxed);
      limit_[static_cast<std::size_t>(at)] = s.lists_.limit(list);
    }

    const PointBlock block_, others_;
    std::int64_t first_ = 0;
    std::int32_t* threshold_ = nullptr;
    std::vector<double> limit_;
    std::vector<std::int32_t> end_;
    std::vector<Kept> kept_;
    std::vector<Offered> offers_;
  };

  std::int32_t group_of(const Edge& edge, std::int32_t at) const {
    return s_.request_.groups
        ->of()[static_cast<std::size_t>(edge.id_of(at).value)];
  }

  Search& s_;
  Edge row_, column_;
};

}  // namespace cpu
}  // namespace fsknn
