#include "cpu/search/unheld.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/search/exact_rows.hpp"
#include "cpu/search/search.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// Polls for interrupts and reports a share that others set.
class StillAt final : public Progress {
 public:
  explicit StillAt(Progress* to) : to_(to) {}
  bool report(double) override { return to_ == nullptr || to_->report(share); }
  double share = 0.0;

 private:
  Progress* to_;
};

/// A block in memory. Of points that are made when they are read, only the
/// filter's form is kept.
struct HeldBlock {
  std::int64_t number = -1;
  std::unique_ptr<RowRange> source;
  PreparedPoints points;
  FilterRows filter;

  PointBlock view(std::int64_t block_points) const {
    const std::int64_t first = number * block_points;
    return {&points, &filter, Place{first},
            PointId{static_cast<std::int32_t>(first)}};
  }
};

/// The points of one source in blocks of consecutive numbers, so that a file is
/// read in order. Within a block they are shuffled. A point's place among all
/// is its place in the block plus the number of the block's first point.
class Blocks {
 public:
  Blocks(const RowSource& source, const std::vector<std::int64_t>& skip,
         const RowRecipe& recipe, const FilterScale& scale, RowKernel kernel,
         const Plan& plan, int num_threads, int slots, StillAt& progress)
      : source_(source),
        skip_(skip),
        recipe_(recipe),
        scale_(scale),
        kernel_(kernel),
        plan_(plan),
        num_threads_(num_threads),
        held_(static_cast<std::size_t>(slots)),
        progress_(progress) {}

  std::int64_t count() const {
    return (source_.num_points() + plan_.block_points - 1) / plan_.block_points;
  }
  std::int64_t num_places() const { return count() * plan_.block_points; }

  /// Returns block `number`. It stays valid while later calls pass it as
  /// `number` or `other`.
  const HeldBlock& get(std::int64_t number, std::int64_t other = -1) {
    for (const HeldBlock& block : held_)
      if (block.number == number) return block;
    HeldBlock& slot = held_[held_.size() > 1 && held_[0].number == other];
    read(number, slot);
    complete(scale_, slot.filter);
    return slot;
  }

  /// Returns the largest error of the filter's rows.
  double error() {
    double largest = 0.0;
    for (std::int64_t b = 0; b < count(); ++b) {
      read(b, held_[0]);
      largest = std::max(largest, held_[0].filter.error);
      // This block was packed before the slack was known, so that it is not
      // kept.
      held_[0] = HeldBlock();
    }
    return largest;
  }

 private:
  void read(std::int64_t number, HeldBlock& to) {
    to = HeldBlock();  // frees its memory first
    const std::int64_t first = number * plan_.block_points;
    const std::int64_t count =
        std::min(plan_.block_points, source_.num_points() - first);
    std::vector<std::int64_t> skip(
        std::lower_bound(skip_.begin(), skip_.end(), first),
        std::lower_bound(skip_.begin(), skip_.end(), first + count));
    for (std::int64_t& i : skip) i -= first;
    to.source.reset(new RowRange(source_, first, count));
    to.points = prepare_points(*to.source, recipe_, skip, true, kernel_,
                               num_threads_, &progress_, false);
    to.filter = pack(scale_, to.points, num_threads_, &progress_);
    to.number = number;
  }

  const RowSource& source_;
  const std::vector<std::int64_t>& skip_;
  const RowRecipe recipe_;
  const FilterScale& scale_;
  const RowKernel kernel_;
  const Plan& plan_;
  const int num_threads_;
  std::vector<HeldBlock> held_;
  StillAt& progress_;
};

/// Calls pair(i, j) for every two different blocks of a graph, and own(i) for
/// each block before its first pair. The order reverses at each end, so that
/// blocks in memory are used before they are replaced.
template <class Own, class Meet>
void sweep_graph(Blocks& blocks, Own own, Meet pair) {
  const std::int64_t count = blocks.count();
  own(blocks.get(0));
  for (std::int64_t i = 0; i + 1 < count; ++i) {
    for (std::int64_t step = i + 1; step < count; ++step) {
      const std::int64_t j = i % 2 == 0 ? step : count + i - step;
      const HeldBlock& row = blocks.get(i, j);
      const HeldBlock& column = blocks.get(j, i);
      if (i == 0) own(column);
      pair(row, column);
    }
  }
}

/// Calls pair(i, j, first) for every block of queries and every block of
/// points.
template <class Meet>
void sweep_queries(Blocks& queries, Blocks& points, Meet pair) {
  for (std::int64_t i = 0; i < queries.count(); ++i) {
    const HeldBlock& row = queries.get(i);
    for (std::int64_t step = 0; step < points.count(); ++step) {
      const std::int64_t j = i % 2 == 0 ? step : points.count() - 1 - step;
      pair(row, points.get(j), step == 0);
    }
  }
}

/// Computes the correlations of a block's points with their neighbours in the
/// other block. The neighbours are in `out` already.
void correlate(const Kernels& kernels, const DistanceRule& rule,
               const PointBlock& rows, const PointBlock& columns,
               std::int64_t k, int num_threads, Progress* progress,
               const Neighbours& out) {
  constexpr std::int64_t kRows = 64;
  const PointOrder& order = columns.points->order;
  const std::int32_t begin = columns.first_id.value;
  const std::int32_t end =
      begin + static_cast<std::int32_t>(order.place.size());
  run_pieces(
      (rows.size() + kRows - 1) / kRows, num_threads, {progress, 1.0, 1.0},
      [&] {
        return [&,
                products = RowSums(kernels, Accumulation::dot, *rows.points,
                                   *columns.points),
                at = std::vector<std::int64_t>()](std::int64_t piece) mutable {
          const std::int64_t last = std::min(rows.size(), (piece + 1) * kRows);
          for (std::int64_t p = piece * kRows; p < last; ++p) {
            const AnswerRow row = {rows.id(Place{p}).value};
            const std::int64_t first = out.at(row, Rank{0}), step = out.step();
            at.clear();
            for (std::int64_t e = first; e < first + k * step; e += step)
              if (out.index[e] > begin && out.index[e] <= end) at.push_back(e);
            const auto other = [&](std::int64_t i) {
              const std::int32_t j = out.index[at[static_cast<std::size_t>(i)]];
              return order.place_of(PointId{j - 1 - begin});
            };
            const std::int64_t count = static_cast<std::int64_t>(at.size());
            const double* sum = products(Place{p}, count, other);
            for (std::int64_t i = 0; i < count; ++i)
              out.correlation[at[static_cast<std::size_t>(i)]] =
                  rule.correlation(sum[i], rows.points->sums[p],
                                   columns.points->sums[other(i).value]);
          }
        };
      });
}

/// Notes the place of each point of a block among all points.
void note_places(const PointBlock& block, std::vector<std::int32_t>& place) {
  for (std::int64_t p = 0; p < block.size(); ++p)
    place[static_cast<std::size_t>(block.id(Place{p}).value)] =
        static_cast<std::int32_t>(block.among_all(Place{p}).value);
}

Plan plan_blocks(const Request& request, const RowSource& points,
                 const RowSource* queries) {
  PlanInput input =
      plan_input(request, points.num_points(), points.num_features(),
                 queries != nullptr ? queries->num_points() : 0);
  input.on_disk = true;
  return plan_cpu(input);
}

/// All rows of a source, read one by one and not held, from which the scale is
/// chosen.
struct Unheld {
  Unheld(const RowSource& source, const RowRecipe& recipe,
         const std::vector<std::int64_t>& skip, RowKernel kernel,
         int num_threads, Progress* progress)
      : all(source, 0, source.num_points(), true),
        points(prepare_points(all, recipe, skip, false, kernel, num_threads,
                              progress, false)) {}
  RowRange all;
  PreparedPoints points;
};

FilterScale scale_of(const Request& request, const Kernels& kernels,
                     const DistanceRule& rule, const RowRecipe& recipe,
                     const RowSource& points, const RowSource* queries,
                     Progress* progress) {
  const Unheld columns(points, recipe, request.skip, kernels.prepare_row,
                       request.num_threads, progress);
  std::unique_ptr<Unheld> rows;
  if (queries != nullptr)
    rows.reset(new Unheld(*queries, recipe, request.query_skip,
                          kernels.prepare_row, request.num_threads, progress));
  return choose_scale(*request.metric, rule, kernels, columns.points,
                      rows ? &rows->points : nullptr, request.num_threads,
                      use_within(request));
}

}  // namespace

void find_streamed(const Request& request, const RowSource& points,
                   const RowSource* queries, const Neighbours& out,
                   Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const bool is_graph = queries == nullptr;
  const int threads = request.num_threads;
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const int exponent = common_exponent(request, points, queries, threads);
  const DistanceRule rule(*request.metric, exponent);
  const RowRecipe recipe = recipe_of(request, exponent);
  const Plan plan = plan_blocks(request, points, queries);
  StillAt still(progress);
  FilterScale scale =
      scale_of(request, kernels, rule, recipe, points, queries, &still);
  Blocks columns(points, request.skip, recipe, scale, kernels.prepare_row, plan,
                 threads, is_graph ? 2 : 1, still);
  std::unique_ptr<Blocks> own;
  if (!is_graph)
    own.reset(new Blocks(*queries, request.query_skip, recipe, scale,
                         kernels.prepare_row, plan, threads, 1, still));
  Blocks& rows = is_graph ? columns : *own;
  double error = 0.0;
  if (scale.form->needs_errors) {
    error = columns.error();
    if (!is_graph) error = std::max(error, rows.error());
  }
  set_slack(scale, error, padded_features(points.num_features()));

  tell_chosen(progress, {scale.numbers(), false});
  Search search(request, plan, kernels, rule, scale, is_graph,
                rows.num_places(), progress);
  std::vector<std::int32_t> place(static_cast<std::size_t>(out.rows), -1);
  const double seconds_prepare = seconds_since(start);
  const double num_points = static_cast<double>(points.num_points());
  const double all =
      static_cast<double>(out.rows) * num_points * (is_graph ? 0.5 : 1.0);
  const auto meet = [&](const PointBlock& a, const PointBlock& b) {
    const double pairs = static_cast<double>(a.size()) *
                         static_cast<double>(b.size()) *
                         (a.filter == b.filter ? 0.5 : 1.0);
    const double to = std::min(1.0, still.share + pairs / all);
    search.meet({{&a, &b}}, still.share, to);
    still.share = to;
  };
  const std::int64_t size = plan.block_points;
  if (is_graph)
    sweep_graph(
        columns,
        [&](const HeldBlock& block) {
          const PointBlock view = block.view(size);
          note_places(view, place);
          search.seed({{&view, &view}}, still.share, still.share);
          meet(view, view);
        },
        [&](const HeldBlock& a, const HeldBlock& b) {
          meet(a.view(size), b.view(size));
        });
  else
    sweep_queries(rows, columns,
                  [&](const HeldBlock& a, const HeldBlock& b, bool first) {
                    const PointBlock view = a.view(size);
                    if (first) {
                      note_places(view, place);
                      const PointBlock of = b.view(size);
                      search.seed({{&view, &of}}, still.share, still.share);
                    }
                    meet(view, b.view(size));
                  });
  const double seconds_search = seconds_since(start) - seconds_prepare;
  if (!search.emit(out, place, nullptr, nullptr)) throw RangeFailure();
  if (out.correlation != nullptr) {
    const auto of = [&](const PointBlock& a, const PointBlock& b) {
      correlate(kernels, rule, a, b, request.k, threads, progress, out);
    };
    if (is_graph)
      sweep_graph(
          columns,
          [&](const HeldBlock& block) {
            of(block.view(size), block.view(size));
          },
          [&](const HeldBlock& a, const HeldBlock& b) {
            of(a.view(size), b.view(size));
            of(b.view(size), a.view(size));
          });
    else
      sweep_queries(rows, columns,
                    [&](const HeldBlock& a, const HeldBlock& b, bool) {
                      of(a.view(size), b.view(size));
                    });
  }
  if (stats == nullptr) return;
  stats->pairs_filtered = search.counts().filtered;
  stats->pairs_pruned = search.counts().pruned;
  stats->filter =
      stats->pairs_filtered > 0 ? scale.numbers() : FilterNumbers::none;
  stats->pairs_exact = search.counts().exact;
  stats->streamed = true;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
