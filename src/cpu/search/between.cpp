#include "cpu/search/engine.hpp"

#include <memory>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/search/plan.hpp"
#include "cpu/search/exact_rows.hpp"
#include "cpu/search/held.hpp"
#include "cpu/search/search.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// One of the two blocks, and the first row of its points in the answer.
struct Half {
  PointBlock block;
  std::int64_t first_row;

  std::int64_t row(std::int64_t at) const {
    return first_row + block.points->order.id_at(block.place(at)).value;
  }
};

bool some_are_open(const Between& between, const Half& half) {
  for (std::int64_t p = 0; p < half.block.size(); ++p)
    if (between.limit(half.row(p)) == HUGE_VAL) return true;
  return false;
}

/// Writes the neighbours that each row of either half has in the other half.
class Lists {
 public:
  Lists(const Request& request, const Between& between, const Kernels& kernels,
        const DistanceRule& rule, Search& search,
        const std::vector<Half>& halves, WithinRows& answer)
      : request_(request),
        between_(between),
        kernels_(kernels),
        rule_(rule),
        search_(search),
        halves_(halves),
        answer_(answer) {}

  void write() {
    const std::int64_t num_rows = between_.num_rows();
    WithinAnswer::Counts counts(static_cast<std::size_t>(num_rows), 0);
    found_.resize(static_cast<std::size_t>(num_rows));
    each([&](const Half& half, const Half& other) {
      return [&](std::int64_t at) {
        const std::size_t row = static_cast<std::size_t>(half.row(at));
        Search::Found& found = found_[row];
        found = search_.found_of(half.block, at, other.block);
        found.size = between_.limit(half.row(at)) > -HUGE_VAL
                         ? length_within_range(found.distance, found.size)
                         : 0;
        counts[row] = static_cast<std::int32_t>(found.size);
      };
    });
    answer_.allocate(counts);
    each([&](const Half& half, const Half& other) {
      return [&, of = RowSums(kernels_, Accumulation::dot, *half.block.points,
                              *other.block.points)](std::int64_t at) mutable {
        put(half, other, at, of);
      };
    });
  }

 private:
  void put(const Half& half, const Half& other, std::int64_t at, RowSums& of) {
    const std::int64_t row = half.row(at);
    const Search::Found& found = found_[static_cast<std::size_t>(row)];
    if (found.size == 0) return;
    const WithinRows::Row to = answer_.row(row);
    std::copy_n(found.distance, found.size, to.distance);
    for (std::int64_t e = 0; e < found.size; ++e)
      to.index[e] = found.index[e] + 1;
    if (to.correlation == nullptr) return;
    const PointBlock& columns = other.block;
    const auto place = [&](std::int64_t e) {
      return columns.points->order.place_of(
          PointId{found.index[e] - columns.first_id.value});
    };
    const Place own = half.block.place(at);
    const double* sum = of(own, found.size, place);
    for (std::int64_t e = 0; e < found.size; ++e)
      to.correlation[e] =
          rule_.correlation(sum[e], half.block.points->sums[own.value],
                            columns.points->sums[place(e).value]);
  }

  /// Calls make(half, other)(place) for all rows, on all threads.
  template <class Make>
  void each(Make make) {
    constexpr std::int64_t together = 64;
    for (const Half& half : halves_) {
      const Half& other = &half == &halves_[0] ? halves_.back() : halves_[0];
      run_pieces(
          (half.block.size() + together - 1) / together, request_.num_threads,
          {}, [&] {
            return [&, one = make(half, other)](std::int64_t piece) mutable {
              const std::int64_t end =
                  std::min(half.block.size(), (piece + 1) * together);
              for (std::int64_t p = piece * together; p < end; ++p) one(p);
            };
          });
    }
  }

  const Request& request_;
  const Between& between_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  Search& search_;
  const std::vector<Half>& halves_;
  WithinRows& answer_;
  std::vector<Search::Found> found_;
};

}  // namespace

void HeldPoints::find_between(const Request& asked, const Between& between,
                              const BlockRows* others, WithinRows& answer,
                              Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const Request request = suited_to(asked, others);
  const FilterUse use = use_for_lists(request);
  Rows fitted = fit_sorted(request, {others, nullptr, true}, use, progress);
  const bool alone = others == nullptr;
  if (is_empty(fitted))
    return answer.allocate(
        WithinAnswer::Counts(static_cast<std::size_t>(between.num_rows()), 0));
  PlanInput input = plan_input(request, points_.size(), points_.num_features,
                               alone ? 0 : fitted.points.size());
  input.rows_made = !points_.held();
  if (fitted.is_ordered()) input.most_chunks = kMostListed;
  const Plan plan = plan_cpu(input);
  span_chunks(fitted, points_.size(), plan);
  const auto id_at = [](std::int64_t first) {
    return PointId{static_cast<std::int32_t>(first)};
  };
  std::vector<Half> halves = {{block_of(fitted), 0}};
  halves[0].block.first_id = id_at(between.a.first);
  if (!alone) {
    halves.push_back({columns(fitted), between.a.count});
    halves[1].block.first_id = id_at(between.b.first);
    halves[1].block.first_place = Place{halves[0].block.size()};
  }
  const PointBlock& a = halves[0].block;
  const PointBlock& b = halves.back().block;
  const DistanceRule rule(*metric_, exponent_);
  const FilterScale& scale = fitted.columns->scale;
  Search search(request, plan, kernels_, rule, scale, true,
                alone ? a.size() : a.size() + b.size(), progress);
  std::vector<Search::Meeting> seeds;
  for (const Half& half : halves) {
    for (std::int64_t p = 0; p < half.block.size(); ++p)
      search.set_limit(half.block, p, between.limit(half.row(p)));
    // A finite limit, from other blocks, is as low as a limit from a sample of
    // this block. So only rows without a limit need seeds.
    if (some_are_open(between, half))
      seeds.push_back({&half.block, &half == &halves[0] ? &b : &a});
  }
  const double prepared = seconds_since(start);
  search.seed(seeds, 0.02, 0.05);
  search.meet({{&a, &b}}, 0.05, 1.0);
  const double searched = seconds_since(start);
  Lists(request, between, kernels_, rule, search, halves, answer).write();
  if (stats == nullptr) return;
  stats->pairs_filtered = search.counts().filtered;
  stats->pairs_pruned = search.counts().pruned;
  stats->pairs_exact = search.counts().exact;
  stats->filter =
      stats->pairs_filtered > 0 ? scale.numbers() : FilterNumbers::none;
  stats->seconds_prepare = prepared;
  stats->seconds_search = searched - prepared;
  stats->seconds_emit = seconds_since(start) - searched;
}

void find_between(const Request& asked, const Between& between,
                  const RowSource& points, WithinRows& answer,
                  Progress* progress, Stats* stats) {
  check_between(asked, between, points);
  const bool alone = between.b.count == 0;
  const BlockRows a(points, between.a), b(points, between.b);
  const BlockRows& later = alone ? a : b;
  Request request = request_of_blocks(asked, points, later);
  if (!alone) request.query_skip = a.rows_of(asked.skip);
  request.num_threads = threads_for(asked.num_threads, a.num_points(),
                                    later.num_points(), points.num_features());
  HeldPoints(request, later)
      .find_between(request, between, alone ? nullptr : &a, answer, progress,
                    stats);
}

}  // namespace cpu
}  // namespace fsknn
