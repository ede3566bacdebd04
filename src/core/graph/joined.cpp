#include "core/graph/joined.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// Points per piece of work.
constexpr std::int64_t kRowsMerged = 4096;

struct Partner {
  std::int32_t point;
  double length;
};

bool before(const Partner& a, const Partner& b) { return a.point < b.point; }

/// The points whose lists contain each point, in order of their ids.
struct Choosers {
  explicit Choosers(const NearLists& lists)
      : index(lists.index.size()), length(lists.index.size()) {
    const std::int64_t n = lists.num_points();
    start.assign(static_cast<std::size_t>(n) + 1, 0);
    for (std::int64_t e = 0; e < lists.index.size(); ++e)
      ++start[static_cast<std::size_t>(lists.index[e]) + 1];
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      start[i + 1] += start[i];
    std::vector<std::int64_t> next(start.begin(), start.end() - 1);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t end = lists.start[static_cast<std::size_t>(i) + 1];
      for (std::int64_t e = lists.start[static_cast<std::size_t>(i)]; e < end;
           ++e) {
        const std::int64_t to =
            next[static_cast<std::size_t>(lists.index[e])]++;
        index[to] = static_cast<std::int32_t>(i);
        length[to] = lists.distance[e];
      }
      poll_after(1000.0);
    }
  }
  std::vector<std::int64_t> start;
  Buffer<std::int32_t> index;
  Buffer<double> length;
};

/// Merges both directions of a point's pairs.
class Merger {
 public:
  Merger(const NearLists& lists, const Choosers& choosers, JoinKind kind)
      : lists_(lists), choosers_(choosers), kind_(kind) {}

  /// Calls emit(partner) for each, in order. Returns false if the point has a
  /// neighbour twice, or itself.
  template <class Emit>
  bool merge(std::int64_t i, Emit emit) {
    const std::size_t at = static_cast<std::size_t>(i);
    own_.clear();
    for (std::int64_t e = lists_.start[at]; e < lists_.start[at + 1]; ++e)
      own_.push_back({lists_.index[e], lists_.distance[e]});
    std::sort(own_.begin(), own_.end(), before);
    for (std::size_t r = 0; r < own_.size(); ++r)
      if (own_[r].point == i || (r > 0 && own_[r].point == own_[r - 1].point))
        return false;
    std::int64_t c = choosers_.start[at];
    const std::int64_t end = choosers_.start[at + 1];
    for (const Partner& mine : own_) {
      for (; c < end && choosers_.index[c] < mine.point; ++c) alone(c, emit);
      if (c < end && choosers_.index[c] == mine.point) {
        emit(Partner{mine.point, std::min(mine.length, choosers_.length[c++])});
      } else if (kind_ == JoinKind::either) {
        emit(mine);
      }
    }
    for (; c < end; ++c) alone(c, emit);
    return true;
  }

 private:
  template <class Emit>
  void alone(std::int64_t c, Emit emit) {
    if (kind_ == JoinKind::either)
      emit(Partner{choosers_.index[c], choosers_.length[c]});
  }

  const NearLists& lists_;
  const Choosers& choosers_;
  const JoinKind kind_;
  std::vector<Partner> own_;
};

}  // namespace

JoinedGraph join_directions(const NearLists& lists, JoinKind kind,
                            int num_threads, Progress* progress) {
  const std::int64_t n = lists.num_points();
  const Choosers choosers(lists);
  const std::int64_t num_blocks = (n + kRowsMerged - 1) / kRowsMerged;
  num_threads = useful_threads(num_threads,
                               20.0 * static_cast<double>(lists.index.size()));
  JoinedGraph graph;
  graph.start.assign(static_cast<std::size_t>(n) + 1, 0);
  // The first pass counts the pairs, the second writes them.
  const auto each_row = [&](double from, double to, auto work) {
    run_pieces(num_blocks, num_threads, {progress, from, to}, [&] {
      return [&, merger = Merger(lists, choosers, kind)](
                 std::int64_t block) mutable {
        const std::int64_t end = std::min(n, (block + 1) * kRowsMerged);
        for (std::int64_t i = block * kRowsMerged; i < end; ++i)
          work(merger, i);
      };
    });
  };
  std::atomic<std::int64_t> repeated{n};
  each_row(0.0, 0.5, [&](Merger& merger, std::int64_t i) {
    std::int64_t& size = graph.start[static_cast<std::size_t>(i) + 1];
    if (merger.merge(i, [&](const Partner&) { ++size; })) return;
    std::int64_t first = repeated;
    while (i < first && !repeated.compare_exchange_weak(first, i)) continue;
  });
  if (repeated < n)
    throw RepeatedNeighbour(static_cast<std::int32_t>(repeated));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    graph.start[i + 1] += graph.start[i];
  graph.index = Buffer<std::int32_t>(graph.start.back());
  graph.length = Buffer<double>(graph.start.back());
  each_row(0.5, 1.0, [&](Merger& merger, std::int64_t i) {
    std::int64_t to = graph.row(i);
    merger.merge(i, [&](const Partner& partner) {
      graph.index[to] = partner.point;
      graph.length[to++] = partner.length;
    });
  });
  return graph;
}

std::vector<double> local_scales(const NearLists& lists,
                                 const JoinedGraph& graph, std::int64_t rank,
                                 int num_threads) {
  const std::int64_t n = graph.num_points();
  std::vector<double> scales(static_cast<std::size_t>(n), 0.0);
  run_pieces(
      (n + kRowsMerged - 1) / kRowsMerged,
      useful_threads(num_threads,
                     20.0 * static_cast<double>(lists.index.size())),
      {}, [&] {
        return [&, found = std::vector<double>()](std::int64_t block) mutable {
          const std::int64_t end = std::min(n, (block + 1) * kRowsMerged);
          for (std::int64_t i = block * kRowsMerged; i < end; ++i) {
            const std::size_t at = static_cast<std::size_t>(i);
            if (lists.empty(static_cast<std::int32_t>(i)))
              found.assign(graph.length.data() + graph.row(i),
                           graph.length.data() + graph.row(i + 1));
            else
              found.assign(lists.distance.data() + lists.start[at],
                           lists.distance.data() + lists.start[at + 1]);
            if (found.empty()) continue;
            std::sort(found.begin(), found.end());
            const std::size_t last = found.size() - 1;
            scales[at] =
                found[std::min(static_cast<std::size_t>(rank - 1), last)];
            if (scales[at] > 0.0) continue;
            const auto other =
                std::upper_bound(found.begin(), found.end(), 0.0);
            if (other != found.end()) scales[at] = *other;
          }
        };
      });
  double least = std::numeric_limits<double>::infinity();
  for (const double s : scales)
    if (s > 0.0) least = std::min(least, s);
  if (!(least < std::numeric_limits<double>::infinity())) least = 1.0;
  for (double& s : scales)
    if (s == 0.0) s = least;
  return scales;
}

}  // namespace fsknn
