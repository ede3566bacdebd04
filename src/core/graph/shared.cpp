#include "core/graph/shared.hpp"

#include <algorithm>
#include <atomic>

#include "core/base/pieces.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace {

// Points per piece of work.
constexpr std::int64_t kRowsShared = 256;

/// A member of a set (or a holder of a point), and the member's rank there.
struct Member {
  std::int32_t point, rank;
};

/// The sets that each point is in.
struct Holders {
  explicit Holders(const NeighbourSets& sets) {
    const std::int64_t n = sets.num_points();
    // Each point is in its own set.
    start.assign(static_cast<std::size_t>(n) + 1, 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      start[i + 1] = 1;
    for (const std::int32_t j : sets.index)
      ++start[static_cast<std::size_t>(j) + 1];
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      start[i + 1] += start[i];
    member.resize(static_cast<std::size_t>(start.back()));
    std::vector<std::int64_t> next(start.begin(), start.end() - 1);
    for (std::int32_t i = 0; i < n; ++i) {
      const auto hold = [&](std::int32_t j, std::int64_t rank) {
        member[static_cast<std::size_t>(next[static_cast<std::size_t>(j)]++)] =
            {i, static_cast<std::int32_t>(rank)};
      };
      const std::int64_t first = sets.start[static_cast<std::size_t>(i)];
      const std::int64_t end = sets.start[static_cast<std::size_t>(i) + 1];
      hold(i, 0);
      for (std::int64_t e = first; e < end; ++e)
        hold(sets.index[static_cast<std::size_t>(e)], e - first + 1);
    }
  }
  std::vector<std::int64_t> start;
  std::vector<Member> member;  ///< for each point, in order of the holders
};

}  // namespace

std::vector<SharedEdges> shared_neighbours(const NeighbourSets& sets,
                                           SharedKind kind, double least,
                                           double most, int num_threads,
                                           Progress* progress) {
  const std::int64_t n = sets.num_points();
  const Holders holders(sets);
  const auto size_of = [&](std::int64_t i) {
    return sets.start[static_cast<std::size_t>(i) + 1] -
           sets.start[static_cast<std::size_t>(i)];
  };
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < n; ++i) k = std::max(k, size_of(i));
  const auto similarity = [&](std::int64_t i, std::int64_t j,
                              std::int32_t value) {
    double s = value;
    if (kind == SharedKind::rank) s = static_cast<double>(k) - 0.5 * value;
    if (kind == SharedKind::jaccard)
      s = s / (static_cast<double>(size_of(i) + size_of(j) + 2) - s);
    return std::max(s, 1e-6);
  };

  std::vector<SharedEdges> parts(
      static_cast<std::size_t>((n + kRowsShared - 1) / kRowsShared));
  std::atomic<std::int64_t> total{0};
  run_pieces(
      static_cast<std::int64_t>(parts.size()), num_threads,
      {progress, 0.0, 1.0}, [&] {
        return [&,
                value =
                    std::vector<std::int32_t>(static_cast<std::size_t>(n), -1),
                met = std::vector<std::int32_t>()](std::int64_t piece) mutable {
          SharedEdges& out = parts[static_cast<std::size_t>(piece)];
          const std::int64_t end = std::min(n, (piece + 1) * kRowsShared);
          for (std::int64_t i = piece * kRowsShared; i < end; ++i) {
            poll();
            met.clear();
            const auto meet = [&](std::int32_t shared, std::int32_t rank) {
              const std::size_t at = static_cast<std::size_t>(shared);
              // Holders are in order: those after i come last.
              for (std::int64_t e = holders.start[at + 1];
                   e-- > holders.start[at];) {
                const Member& other =
                    holders.member[static_cast<std::size_t>(e)];
                if (other.point <= i) break;
                std::int32_t& v = value[static_cast<std::size_t>(other.point)];
                const bool first = v < 0;
                if (first) met.push_back(other.point);
                if (kind == SharedKind::rank)
                  v = first ? rank + other.rank
                            : std::min(v, rank + other.rank);
                else
                  v = first ? 1 : v + 1;
              }
            };
            meet(static_cast<std::int32_t>(i), 0);
            const std::int64_t first = sets.start[static_cast<std::size_t>(i)];
            for (std::int64_t e = 0; e < size_of(i); ++e)
              meet(sets.index[static_cast<std::size_t>(first + e)],
                   static_cast<std::int32_t>(e + 1));
            std::sort(met.begin(), met.end());
            for (const std::int32_t j : met) {
              std::int32_t& v = value[static_cast<std::size_t>(j)];
              const double s = similarity(i, j, v);
              v = -1;
              if (s < least) continue;
              out.from.push_back(static_cast<std::int32_t>(i + 1));
              out.to.push_back(j + 1);
              out.similarity.push_back(s);
            }
          }
          const std::int64_t so_far = total +=
              static_cast<std::int64_t>(out.from.size());
          if (static_cast<double>(so_far) > most)
            throw TooManyPairs(static_cast<double>(so_far), true, most, -1.0);
        };
      });
  return parts;
}

}  // namespace fsknn
