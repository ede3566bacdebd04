// Finds the k nearest among the pairs of two blocks of points, or of one with
// itself.
//
// It uses one device: a search by blocks gives each device a task of its own,
// and its worker holds no other device.

#include <algorithm>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/between.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/search/block_pair.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Used where there is no room for both sides: each side's points are queries
/// among the other's, in a search that needs less memory, or one side has its
/// graph. Each pair is then computed twice, except in a graph.
class BySearches {
 public:
  BySearches(const Request& request, const Between& between,
             const RowSource& points, bool correlation, Progress* progress,
             PairLists& found)
      : request_(request),
        correlation_(correlation),
        progress_(progress),
        found_(found),
        a_(points, between.a),
        b_(points, between.b) {
    const std::int64_t a = between.a.count;
    for (const std::int64_t row : request.skip)
      (row < a ? skip_a_ : skip_b_).push_back(row < a ? row : row - a);
  }

  Stats run() {
    if (b_.num_points() == 0) {
      search(a_, skip_a_, nullptr, skip_a_, 0, 0);
    } else {
      search(b_, skip_b_, &a_, skip_a_, 0, a_.num_points());
      search(a_, skip_a_, &b_, skip_b_, a_.num_points(), 0);
    }
    return stats_;
  }

 private:
  /// first_row, first_point: the rows of the answer of the first of each.
  void search(const BlockRows& points, const std::vector<std::int64_t>& skip,
              const BlockRows* queries,
              const std::vector<std::int64_t>& query_skip,
              std::int64_t first_row, std::int64_t first_point) {
    const auto size = [](const std::vector<std::int64_t>& all) {
      return static_cast<std::int64_t>(all.size());
    };
    const std::int64_t num_rows =
        queries == nullptr ? points.num_points() : queries->num_points();
    const std::int64_t others = points.num_points() - size(skip);
    Request request = request_;
    request.skip = skip;
    request.query_skip =
        queries == nullptr ? std::vector<std::int64_t>() : query_skip;
    request.k = std::min(request_.k, queries == nullptr ? others - 1 : others);
    const std::int64_t asked = num_rows - size(query_skip);
    if (request.k < 1 || asked == 0) return;
    const std::size_t entries = static_cast<std::size_t>(asked * request.k);
    std::vector<std::int32_t> index(entries);
    std::vector<double> distance(entries),
        correlation(correlation_ ? entries : 0);
    Neighbours out;
    out.rows = num_rows;
    out.index = index.data();
    out.distance = distance.data();
    out.correlation = correlation_ ? correlation.data() : nullptr;
    out.edges_a_row = request.k;
    out.left_out = &query_skip;
    Stats stats;
    find_neighbours(request, points, queries, out, progress_, &stats);
    stats_.add_after(stats);
    for (std::int32_t& i : index)
      i += static_cast<std::int32_t>(first_point) - 1;
    auto next = query_skip.begin();
    for (std::int64_t row = 0, at = 0; row < num_rows; ++row) {
      if (next != query_skip.end() && *next == row) {
        ++next;
        continue;
      }
      found_.take(first_row + row, request.k, distance.data() + at,
                  index.data() + at,
                  correlation_ ? correlation.data() + at : nullptr);
      at += request.k;
    }
  }

  const Request& request_;
  const bool correlation_;
  Progress* const progress_;
  PairLists& found_;
  const BlockRows a_, b_;
  std::vector<std::int64_t> skip_a_, skip_b_;
  Stats stats_;
};

/// Uses both sides on the first device.
Stats by_block_pair(const BlockWork& work, const UsedDevices& gpus,
                    Progress* progress, PairLists& found) {
  Workers workers(progress, num_pieces(work));
  Stats all;
  run_parts(workers, gpus, 1, all, [&](int) {
    const Clock::time_point start = Clock::now();
    BlockPair pair(work, workers, found);
    pair.run();
    Stats own = pair.stats();
    own.seconds_device = seconds_since(start);
    return own;
  });
  all.bytes_device = gpus.most_bytes();
  all.seconds_search = all.seconds_device;
  return all;
}

}  // namespace

void find_between(const Request& asked, const Between& between,
                  const RowSource& points, WithinRows& answer,
                  Progress* progress, Stats* stats) {
  check_between(asked, between, points);
  check_metric(*asked.metric);
  const Clock::time_point start = Clock::now();
  const BlockRows blocks(points, between.a, between.b);
  Request request = request_of_blocks(asked, points, blocks);
  request.devices.resize(1, 0);  // the first, whether it was named or not
  const Sides sides(blocks, between, request.skip);
  PairLists found(between);
  if (sides.empty()) return found.write(blocks, answer);

  const UsedDevices gpus(request.devices);
  const GpuFacts facts = facts_of(gpus.all(), request.max_device_memory);
  const std::int64_t k = std::min(request.k, sides.most_neighbours());
  const int exponent =
      common_exponent(request, blocks, nullptr, request.num_threads);
  const BlockWork work = {request,
                          between,
                          sides,
                          recipe_of(request, exponent),
                          DistanceRule(*request.metric, exponent),
                          k,
                          filter_of(request, sides, k, facts),
                          facts.multiprocessors,
                          request.metric->is_unit_dot()};
  const double usable = facts.bytes_usable();
  const bool fits = usable <= 0 || bytes_of(work) <= usable;
  const double seconds_prepare = seconds_since(start);
  const auto by_searches = [&] {
    return BySearches(request, between, points, work.correlation, progress,
                      found)
        .run();
  };
  Stats all;
  if (!sides.alone && fits) {
    all = by_block_pair(work, gpus, progress, found);
  } else {
    // A search fails if one of the k distances exceeds the range of doubles.
    // For a part of the points this only ends the list.
    try {
      all = by_searches();
    } catch (const RangeFailure&) {
      if (!fits) throw;
      all = by_block_pair(work, gpus, progress, found);
    }
  }
  const Clock::time_point searched = Clock::now();
  found.write(blocks, answer);
  all.seconds_prepare += seconds_prepare;
  all.seconds_emit += seconds_since(searched);
  if (stats != nullptr) *stats = all;
}

}  // namespace cuda
}  // namespace fsknn
