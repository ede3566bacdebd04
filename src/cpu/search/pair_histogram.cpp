#include "cpu/search/engine.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/bin_table.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/missing/masked_pass.hpp"
#include "cpu/search/keys_pay.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/prepared_pairs.hpp"
#include "cpu/search/tree.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// One thread's counts. Each slot has several counters, because the next pair
/// is often in the same slot: an addition would wait for the last one to the
/// same counter.
class Tally {
 public:
  static constexpr std::size_t kAside = 4;

  explicit Tally(const PairBins& bins)
      : bins_(bins), count_(bins.num_slots() * kAside, 0) {}

  /// turn: any number; consecutive numbers use different counters.
  void add(std::int32_t slot, std::int64_t turn) {
    ++count_[static_cast<std::size_t>(slot) * kAside +
             static_cast<std::size_t>(turn) % kAside];
  }
  void add_value(double value) {
    add(static_cast<std::int32_t>(bins_.slot(value)), 0);
    least_ = std::min(least_, value);
    largest_ = std::max(largest_, value);
  }
  /// Call it from one thread at a time.
  void add_to(PairCounts& all) const {
    for (std::size_t i = 0; i < count_.size(); ++i)
      all.count[i / kAside] += count_[i];
    all.least = std::min(all.least, least_);
    all.largest = std::max(all.largest, largest_);
  }

 private:
  const PairBins& bins_;
  std::vector<std::int64_t> count_;
  double least_ = HUGE_VAL, largest_ = -HUGE_VAL;
};

/// The slot of all pairs beyond some distance.
struct FarSlot {
  double distance = -1.0;  ///< returned distance; below 0: there is none
  std::size_t slot = 0;

  FarSlot(const PairBins& bins, const MetricEntry& metric) {
    const std::vector<double>& breaks = bins.breaks;
    const auto finite = [](double at) { return std::isfinite(at); };
    if (bins.extremes || (bins.similarity && !metric.is_unit_dot())) return;
    if (!bins.similarity) {
      const auto last = std::find_if(breaks.rbegin(), breaks.rend(), finite);
      if (last == breaks.rend()) return;
      distance = *last;
      slot = static_cast<std::size_t>(breaks.rend() - last);
      return;
    }
    // Far pairs are less similar than the first break.
    const auto first = std::find_if(breaks.begin(), breaks.end(), finite);
    if (first == breaks.end() ||
        (metric.sign == Sign::absolute && !(*first > 0.0)))
      return;
    distance = metric.finish(metric.sign == Sign::negative ? -*first : *first,
                             0.0, 0.0);
    slot = static_cast<std::size_t>(first - breaks.begin());
  }
};

/// Whether every pair of the points has a distance within the range of a
/// double. Otherwise each must be computed, since one that has none is an
/// error.
bool all_in_range(const MetricEntry& metric, const DistanceRule& rule,
                  const PreparedPoints& points) {
  if (metric.is_unit_dot()) return true;
  const double* const rows = points.rows.data();
  double largest = 0.0;
  for (std::int64_t e = 0; e < points.size() * points.padded; ++e)
    largest = std::max(largest, std::fabs(rows[e]));
  // Of a sum's roundings each is less than 2^-50 of it.
  double sum = 2.0 * largest;
  if (metric.accumulation == Accumulation::squared_difference) sum *= sum;
  if (metric.accumulation != Accumulation::largest_difference)
    sum *= static_cast<double>(points.padded);
  const double most =
      sum * (1.0 + static_cast<double>(points.padded) * 0x1p-50);
  return is_in_range(most) && is_in_range(rule(most, 0.0, 0.0));
}

/// The inputs that all threads of one pass share.
struct Work {
  const Kernels& kernels;
  const MetricEntry& metric;
  const FilterScale& scale;
  const PointBlock& points;
  const DistanceRule& rule;
  const PairValue& value;
  const BinTable& table;
  std::int64_t chunk_size;
  /// The filter's threshold of far pairs, if the points have boxes.
  std::int32_t far_threshold = 0;

  /// Whether the filter's sum of a pair is the contract's.
  bool sums_are_exact() const { return scale.form->exact_sum != nullptr; }
  bool filtered() const { return table.serves() || sums_are_exact(); }
  /// The counted value, from the contract's sum of the pair at these places.
  double value_of(double sum, std::int64_t row, std::int64_t column) const {
    const double a = points.points->sums[row], b = points.points->sums[column];
    if (value.of_sums()) return value(metric.similarity(sum, a, b));
    return value(rule.value(sum, a, b));
  }
};

/// Counts a pair at once if its filter sum determines the slot or the value;
/// keeps the others for the exact step. Tiles of far pairs are left out.
class CountedPairs : public PairsDefaults {
 public:
  using Threshold = std::int32_t;
  static constexpr int kRows = Tile::rows;

  CountedPairs(const Work& work, std::shared_ptr<Tally> tally)
      : work_(work),
        rows_(*work.points.filter),
        pairs_(work.kernels, work.metric.accumulation, work.scale, work.points,
               work.points, work.chunk_size),
        threshold_(static_cast<std::size_t>(work.chunk_size),
                   work.far_threshold),
        tally_(std::move(tally)) {}

  std::int64_t num_rows() const { return pairs_.num_rows(); }
  std::int64_t num_columns() const { return pairs_.num_columns(); }
  bool has_filter() const { return work_.filtered(); }
  static constexpr Threshold keep_none() { return 0; }
  static constexpr Threshold keep_all() { return 1; }
  double tile_cost() const {
    const double values =
        work_.table.serves() ? 0.0 : 10.0 * kRows * Tile::columns;
    return pairs_.tile_cost() + values;
  }
  void enter(const Chunk& at) { pairs_.enter(at); }
  bool may_meet(const Chunk& at) const { return pairs_.may_meet(at); }
  bool any_near(const Chunk& at, const Threshold*, const Threshold*) {
    return pairs_.any_near(at, threshold_.data(), threshold_.data());
  }
  std::int64_t next_near(std::int64_t r, std::int64_t end,
                         std::int64_t c) const {
    return pairs_.next_near(r, end, c);
  }

  void tile(const Chunk& at, std::int64_t r, std::int64_t c, int panels,
            const Threshold*, const Threshold*, std::uint64_t* keep) {
    const std::int64_t row = at.row0 + r, column = at.column0 + c;
    const std::int64_t end =
        std::min<std::int64_t>(Tile::columns, at.num_columns - c);
    work_.kernels.accumulate(work_.scale.form->product, rows_.row(row),
                             rows_.panel(column), panels, rows_.steps, sums_);
    for (int i = 0; i < kRows; ++i) {
      keep[i] = 0;
      if (r + i >= at.num_rows) continue;
      // On the diagonal each pair is counted from one side, and no row with
      // itself.
      const std::int64_t first =
          at.diagonal ? std::max<std::int64_t>(0, r + i + 1 - c) : 0;
      if (first >= end) continue;
      if (!work_.table.serves()) {
        add_values(row, column, i, first, end);
        continue;
      }
      std::int32_t slots[Tile::columns];
      work_.table.slots_of(sums_ + i * Tile::columns + first, rows_, row + i,
                           column + first, end - first, slots);
      std::uint64_t unsure = 0;
      for (std::int64_t j = first; j < end; ++j) {
        const std::int32_t slot = slots[j - first];
        if (slot == BinTable::kUnsure)
          unsure |= std::uint64_t{1} << j;
        else
          tally_->add(slot, j);
      }
      keep[i] = unsure;
    }
  }

  void hit(const Chunk&, const Pair&, std::int64_t, std::int64_t) {}
  void exact(const std::vector<Pair>& hits, double* sums) {
    pairs_.exact(hits, sums);
  }
  static constexpr bool has(double) { return true; }

 private:
  /// Adds columns first to end - 1 of row i in the tile at these places.
  void add_values(std::int64_t row, std::int64_t column, int i,
                  std::int64_t first, std::int64_t end) {
    const Side side = rows_.side(nullptr, row + i);
    for (std::int64_t j = first; j < end; ++j) {
      const double sum = work_.scale.form->exact_sum(
          sums_[i * Tile::columns + j], side, rows_.side(nullptr, column + j));
      tally_->add_value(work_.value_of(sum, row + i, column + j));
    }
  }

  const Work& work_;
  const FilterRows& rows_;
  PreparedPairs pairs_;
  const std::vector<std::int32_t> threshold_;
  std::shared_ptr<Tally> tally_;
  alignas(64) std::int32_t sums_[Tile::rows * Tile::columns];
};

class CountingSink : public SinkDefaults {
 public:
  static constexpr std::size_t kHits = 2048;

  CountingSink(const Work& work, std::shared_ptr<Tally> tally, PairCounts& all)
      : work_(work), tally_(std::move(tally)), all_(all) {}

  bool enter(const Chunk& at, std::int32_t* row_threshold,
             std::int32_t* column_threshold) {
    at_ = at;
    std::fill_n(row_threshold, work_.chunk_size, CountedPairs::keep_all());
    std::fill_n(column_threshold, work_.chunk_size, CountedPairs::keep_all());
    return true;
  }

  void take(const Pair& hit, double sum) {
    tally_->add_value(
        work_.value_of(sum, at_.row0 + hit.row, at_.column0 + hit.column));
  }

  void merge() { tally_->add_to(all_); }

 private:
  const Work& work_;
  std::shared_ptr<Tally> tally_;
  PairCounts& all_;
  Chunk at_ = {};
};

/// Counts pairs over common samples, all by the exact step.
class MaskedTaker {
 public:
  MaskedTaker(const PairBins& bins, const PairValue& value, PairCounts& all)
      : tally_(bins), value_(value), all_(all) {}
  void take(Place, Place, double found) { tally_.add_value(value_(found)); }
  void merge() { tally_.add_to(all_); }

 private:
  Tally tally_;
  const PairValue& value_;
  PairCounts& all_;
};

void note(Stats* stats, const PassCounts& counts, FilterNumbers numbers) {
  if (stats == nullptr) return;
  stats->pairs_filtered = counts.filtered;
  stats->pairs_pruned = counts.pruned;
  stats->pairs_exact = counts.exact;
  stats->filter = numbers;
}

PairCounts none_of(const PairBins& bins) {
  PairCounts counts;
  counts.count.assign(bins.num_slots(), 0);
  return counts;
}

PairCounts count_masked(const Request& asked, const PairBins& bins,
                        const RowSource& points, Progress* progress,
                        Stats* stats) {
  PairCounts counts = none_of(bins);
  const PairValue value(*asked.metric, bins.similarity);
  MaskedWork work(asked, points, nullptr, progress);
  work.takes_similarities = value.of_sums();
  counts.num_points = work.columns.size();
  if (work.empty()) return counts;
  const Plan plan = work.plan();
  MaskedPass pass(work, plan, false, progress);
  pass.run({progress, 0.0, 1.0},
           [&] { return MaskedTaker(bins, value, counts); });
  note(stats, pass.counts(), pass.numbers());
  return counts;
}

}  // namespace

PairCounts count_pairs(const Request& asked, const PairBins& bins,
                       const RowSource& source, Progress* progress,
                       Stats* stats) {
  if (asked.na_pairwise)
    return count_masked(asked, bins, source, progress, stats);
  Request request = suited(asked, source, nullptr, progress);
  const double n = static_cast<double>(source.num_points());
  request.num_threads =
      useful_threads(asked.num_threads,
                     n * n * static_cast<double>(source.num_features()) / 16);
  const int threads = request.num_threads;
  const MetricEntry& metric = *request.metric;
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const int exponent = common_exponent(request, source, nullptr, threads);
  PreparedPoints points =
      prepare_points(source, recipe_of(request, exponent), request.skip, true,
                     kernels.prepare_row, threads, progress, false);
  PairCounts counts = none_of(bins);
  counts.num_points = points.size();
  if (points.size() < 2) return counts;

  const DistanceRule rule(metric, exponent);
  const FarSlot far(bins, metric);
  const bool in_tree =
      far.distance >= 0.0 &&
      boxes_pay(
          request, metric, points,
          [&] {
            return rows_within(
                metric, rule,
                std::vector<double>(static_cast<std::size_t>(points.size()),
                                    far.distance));
          }) &&
      all_in_range(metric, rule, points);
  if (in_tree) rearrange(points, tree_order(points, threads), threads);
  FilterScale scale = choose_scale(metric, rule, kernels, points, nullptr,
                                   threads, {0, 0, 1.0, false});
  FilterRows filter = pack(scale, points, threads, progress);
  set_slack(scale, filter.error, points.padded);
  complete(scale, filter);
  PointBlock block;
  block.points = &points;
  block.filter = &filter;

  PlanInput input = plan_input(request, points.size(), points.num_features, 0);
  input.k = 1;
  input.rows_made = !points.held();
  const Plan plan = plan_cpu(input);
  const PairValue value(metric, bins.similarity);
  const BinTable table(bins, value, {scale, metric, rule}, filter);
  Work work = {kernels, metric, scale, block,
               rule,    value,  table, plan.chunk_size};
  KeyTiles tiles;
  std::unique_ptr<ChunkSpans> spans;
  if (in_tree && scale.form->reach != nullptr) {
    work.far_threshold =
        Thresholds(scale, metric, rule).keep_up_to(far.distance);
    tiles = KeyTiles(metric, scale, points, nullptr, threads);
    spans.reset(new ChunkSpans(tiles, points.size(), plan.chunk_size));
    const float limit = limit_of(tiles, scale, &work.far_threshold, 1);
    for (std::int64_t c = 0; c < spans->size(); ++c) spans->set_limit(c, limit);
    block.spans = spans.get();
  }
  const ChunkGrid grid = {plan.num_splits, plan.chunks_per_split, true};
  const PassCounts pairs = run_pass(grid, threads, {progress, 0.0, 1.0}, [&] {
    const auto tally = std::make_shared<Tally>(bins);
    return ChunkPass<CountedPairs, CountingSink>(
        plan.chunk_size, true, [&] { return CountedPairs(work, tally); },
        [&] { return CountingSink(work, tally, counts); });
  });
  note(stats, pairs, work.filtered() ? scale.numbers() : FilterNumbers::none);
  // The pairs that were left out are those that nothing has counted.
  const std::int64_t all = points.size() * (points.size() - 1) / 2;
  if (spans != nullptr)
    counts.count[far.slot] +=
        all - std::accumulate(counts.count.begin(), counts.count.end(),
                              std::int64_t{0});
  return counts;
}

}  // namespace cpu
}  // namespace fsknn
