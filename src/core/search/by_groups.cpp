#include "core/search/by_groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/groups.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace {

/// The answer of one search before it is copied to its lists. It has the rows
/// of the search one after another, or a matrix if rows may be short.
struct Part {
  Part(const Neighbours& out, std::int64_t k, bool as_matrix)
      : index(out.rows * k),
        distance(out.rows * k),
        correlation(out.correlation != nullptr ? out.rows * k : 0) {
    view = out;
    view.edges_a_row = as_matrix ? 0 : k;
    view.index = index.data();
    view.distance = distance.data();
    if (out.correlation != nullptr) view.correlation = correlation.data();
  }

  Buffer<std::int32_t> index;
  Buffer<double> distance, correlation;
  Neighbours view;
};

class ByGroups {
 public:
  ByGroups(const Request& request, const RowSource& points,
           const RowSource* queries, const Neighbours& out, Progress* progress,
           Stats* stats, const FindNeighbours& find)
      : request_(request),
        groups_(*request.groups),
        points_(points),
        queries_(queries),
        out_(out),
        progress_(progress),
        stats_(stats),
        find_(find),
        part_(out, request.k, request.na_pairwise) {
    const std::vector<std::int64_t>& skip =
        queries != nullptr ? request.query_skip : request.skip;
    left_out_.assign(static_cast<std::size_t>(out.rows), 0);
    for (const std::int64_t i : skip)
      left_out_[static_cast<std::size_t>(i)] = 1;
  }

  void run() {
    const std::int64_t all = request_.k * groups_.num_lists();
    for (std::int64_t i = 0; i < out_.rows; ++i)
      if (left_out_[static_cast<std::size_t>(i)])
        emit_missing(out_, AnswerRow::of(i), all);
    for (std::int32_t g = 0; g < groups_.count(); ++g) {
      const double size = 1.0 / groups_.count(), from = g * size;
      search(g, from, from + size);
    }
  }

 private:
  using Lists = PointGroups::Lists;

  /// Searches for all neighbours in a group; in case of `together`, for all
  /// neighbours of a group.
  void search(std::int32_t group, double from, double to) {
    const bool together = groups_.lists() == Lists::together;
    Request part = request_;
    part.groups = nullptr;
    part.skip.clear();
    auto skip = request_.skip.begin();
    for (std::int64_t i = 0; i < points_.num_points(); ++i) {
      const bool skipped = skip != request_.skip.end() && *skip == i;
      if (skipped) ++skip;
      const bool inside = groups_.of()[static_cast<std::size_t>(i)] == group;
      if (skipped || inside == together) part.skip.push_back(i);
    }
    const bool is_graph = queries_ == nullptr;
    double middle = from;
    if (is_graph && groups_.lists() == Lists::each) {
      middle = (from + to) / 2;
      find(part, nullptr, from, middle);
      put(group, [&](std::int32_t own) { return own == group; });
    }
    const auto asks = [&](std::int32_t own) {
      if (together) return own == group;
      return own != group || (!is_graph && groups_.lists() == Lists::each);
    };
    part.query_skip.clear();
    for (std::int64_t i = 0; i < out_.rows; ++i)
      if (left_out_[static_cast<std::size_t>(i)] ||
          !asks(groups_.of_row(AnswerRow::of(i))))
        part.query_skip.push_back(i);
    if (static_cast<std::int64_t>(part.query_skip.size()) == out_.rows) return;
    find(part, is_graph ? &points_ : queries_, middle, to);
    put(group, asks);
  }

  void find(const Request& part, const RowSource* queries, double from,
            double to) {
    const std::int64_t candidates =
        points_.num_points() - static_cast<std::int64_t>(part.skip.size()) -
        (queries == nullptr ? 1 : 0);
    if (candidates < part.k && !part.na_pairwise)
      throw std::invalid_argument("a group has fewer than k points");
    part_.view.left_out = queries == nullptr ? &part.skip : &part.query_skip;
    PartOfProgress share(progress_, from, to);
    Stats stats;
    find_(part, queries, part_.view, progress_ != nullptr ? &share : nullptr,
          &stats);
    if (stats_ != nullptr) stats_->add_after(stats);
  }

  /// Copies the part's rows, of groups for which asks() holds, to their lists.
  template <class Asks>
  void put(std::int32_t group, Asks asks) {
    constexpr std::int64_t kRows = 4096;
    const std::int64_t k = request_.k;
    const bool together = groups_.lists() == Lists::together;
    run_pieces((out_.rows + kRows - 1) / kRows, request_.num_threads, {}, [&] {
      return [&](std::int64_t piece) {
        const std::int64_t end = std::min(out_.rows, (piece + 1) * kRows);
        for (std::int64_t i = piece * kRows; i < end; ++i) {
          const AnswerRow row = AnswerRow::of(i);
          const std::int32_t own = groups_.of_row(row);
          if (left_out_[static_cast<std::size_t>(i)] || !asks(own)) continue;
          const std::int64_t list = together ? 0 : groups_.list_of(own, group);
          copy(row, list * k);
        }
      };
    });
  }

  void copy(AnswerRow row, std::int64_t first_rank) const {
    std::int64_t from = part_.view.at(row, Rank{0});
    std::int64_t to = out_.at(row, Rank{first_rank});
    for (std::int64_t rank = 0; rank < request_.k; ++rank) {
      out_.index[to] = part_.index[from];
      out_.distance[to] = part_.distance[from];
      if (out_.correlation != nullptr)
        out_.correlation[to] = part_.correlation[from];
      from += part_.view.step();
      to += out_.step();
    }
  }

  const Request& request_;
  const PointGroups& groups_;
  const RowSource& points_;
  const RowSource* queries_;
  const Neighbours& out_;
  Progress* progress_;
  Stats* stats_;
  const FindNeighbours& find_;
  Part part_;
  std::vector<char> left_out_;  ///< [rows]
};

}  // namespace

std::vector<std::int64_t> sizes_of(const PointGroups& groups,
                                   const std::vector<std::int64_t>& skip) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(groups.count()));
  for (const std::int32_t g : groups.of()) ++sizes[static_cast<std::size_t>(g)];
  for (const std::int64_t i : skip)
    --sizes[static_cast<std::size_t>(groups.of()[static_cast<std::size_t>(i)])];
  return sizes;
}

void find_by_groups(const Request& request, const RowSource& points,
                    const RowSource* queries, const Neighbours& out,
                    Progress* progress, Stats* stats,
                    const FindNeighbours& find) {
  ByGroups(request, points, queries, out, progress, stats, find).run();
}

}  // namespace fsknn
