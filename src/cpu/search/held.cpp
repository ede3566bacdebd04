#include "cpu/search/held.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/scan.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/search/keys_pay.hpp"
#include "cpu/search/search.hpp"
#include "cpu/search/tree.hpp"
#include "cpu/search/unheld.hpp"
#include "cpu/search/within_search.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The approximate shares of the work that are done when rows are prepared, and
// when thresholds are seeded.
constexpr double kPrepared = 0.02;
constexpr double kSeeded = 0.05;

/// Stores the counts of a search and its times so far.
void note(Stats* stats, const PassCounts& counts, double prepared,
          double searched, double emitted) {
  if (stats == nullptr) return;
  stats->pairs_filtered = counts.filtered;
  stats->pairs_pruned = counts.apart;
  stats->pairs_exact = counts.exact;
  stats->seconds_prepare = prepared;
  stats->seconds_search = searched - prepared;
  stats->seconds_emit = emitted - searched;
}

/// ordered: whether whole chunks may be pruned, all of whose pairs are listed.
Plan plan_for(PlanInput input, bool ordered) {
  constexpr std::int64_t most_chunks = 8192;
  Plan plan = plan_cpu(input);
  if (!ordered || input.chunk_size > 0 || plan.chunks_per_split <= most_chunks)
    return plan;
  input.chunk_size = input.num_points / most_chunks + 1;
  return plan_cpu(input);
}

/// The largest distance that a pair of each row may have; [places].
std::vector<double> limits_of(const Within& within,
                              const PreparedPoints& rows) {
  const double reach = within.reach_of_points();
  std::vector<double> limit;
  for (std::int64_t p = 0; p < rows.size(); ++p)
    limit.push_back(
        std::max(reach, within.limit(rows.order.id_at(Place{p}).value)));
  return limit;
}

}  // namespace

HeldPoints::HeldPoints(const Request& asked, const RowSource& points)
    : whole_(points),
      asked_metric_(*asked.metric),
      skip_(asked.skip),
      weights_(asked.weights),
      covariates_(asked.covariates),
      kernels_(choose_kernels(asked.instruction_set)),
      metric_(asked.metric) {
  if (asked.na_pairwise)
    throw std::invalid_argument("points with missing values are not held");
}

void HeldPoints::choose_features(const std::vector<std::int32_t>& numbers) {
  if (some_ ? numbers == some_->numbers() : numbers.empty()) return;
  std::unique_ptr<FeatureSubset> chosen;
  if (!numbers.empty()) chosen.reset(new FeatureSubset(whole_, numbers));
  forget();
  largest_ = -1;
  some_ = std::move(chosen);
}

/// Frees the prepared points and their filter.
void HeldPoints::forget() {
  is_prepared_ = false;
  in_tree_ = false;
  forget_filter();
  points_ = PreparedPoints();
}

/// A search that fails or is stopped leaves a state from which the next one
/// starts anew. There is no scale before its rows are packed, and no slack
/// before all errors are known.
void HeldPoints::forget_filter() {
  scale_ = FilterScale();
  filter_ = FilterRows();
  error_ = kNoSlack;
}

PointBlock HeldPoints::columns() const {
  PointBlock block;
  block.points = &points_;
  block.filter = &filter_;
  return block;
}

PointBlock HeldPoints::block_of(const Rows& rows) const {
  if (rows.are_points) return columns();
  PointBlock block;
  block.points = &rows.points;
  block.filter = &rows.filter;
  return block;
}

PointBlock HeldPoints::in_order(PointBlock block, const Sorted& sorted,
                                Ordered& order, const Plan& plan) {
  if (!sorted.pays()) return block;
  if (order.sorted) {
    block.filter = &order.sorted->filter();
    block.place_at = &order.sorted->place_at();
  }
  order.spans.reset(
      new ChunkSpans(order.tiles(), block.size(), plan.chunk_size));
  block.spans = order.spans.get();
  return block;
}

/// Returns the request with the metric that suits the points and the queries,
/// and with their largest magnitude.
Request HeldPoints::suited_to(const Request& asked, const RowSource* queries) {
  if (asked.metric != &asked_metric_ || asked.weights != weights_ ||
      asked.covariates != covariates_ || asked.skip != skip_ ||
      asked.na_pairwise)
    throw std::invalid_argument("held points are searched as they are held");
  Request request = asked;
  if (asked_metric_.matrix_scale != MatrixScale::none && request.largest < 0) {
    if (largest_ < 0) largest_ = scan(source(), request.num_threads).largest;
    request.largest = largest_;
    if (queries != nullptr)
      request.largest =
          std::max(largest_, scan(*queries, request.num_threads).largest);
  }
  request.metric = &metric_for(asked_metric_, request.largest);
  return request;
}

/// Prepares the points under the power of two that they share with the queries.
/// Where the queries need another power, all points are prepared again, so that
/// every distance has the bits of the definition. request: as suited_to()
/// returns it.
void HeldPoints::prepare(const Request& request, Progress* progress) {
  const int exponent = matrix_exponent(*request.metric, request.largest);
  if (is_prepared_ && exponent == exponent_ && request.metric == metric_)
    return;
  forget();
  exponent_ = exponent;
  metric_ = request.metric;
  points_ = prepare_points(source(), recipe_of(request, exponent), skip_, true,
                           kernels_.prepare_row, request.num_threads, progress,
                           false);
  is_prepared_ = true;
}

/// Packs points and queries for the filter. If the queries exceed the scale
/// (reaches(), filter/scale.hpp), both together get a new one, and the points
/// are packed again. So the bounds hold for any queries. If their errors exceed
/// the slack, it is widened and the points' numbers are updated. A scale that
/// was chosen for lists is not used for pairs within a distance, nor the
/// reverse. in_tree: whether points and queries are first put in the order of a
/// tree, if the form has limits for its boxes.
void HeldPoints::fit_filter(const Request& request, const FilterUse& use,
                            Rows& rows, Progress* progress, bool in_tree) {
  const int threads = request.num_threads;
  const PreparedPoints* queries = rows.are_points ? nullptr : &rows.points;
  if (scale_.form == nullptr || (use.k > 0) != (use_.k > 0) ||
      use.bits != use_.bits ||
      (queries != nullptr && !reaches(scale_, *queries, threads))) {
    forget_filter();
    FilterScale scale =
        choose_scale(*metric_, DistanceRule(*metric_, exponent_), kernels_,
                     points_, queries, threads, use);
    use_ = use;
    scale_ = std::move(scale);
  }
  if (in_tree && scale_.form->reach != nullptr) {
    if (!in_tree_) {
      const std::vector<std::int32_t> order = tree_order(points_, threads);
      is_prepared_ = false;  // if it is stopped half-way
      rearrange(points_, order, threads);
      is_prepared_ = in_tree_ = true;
      filter_ = FilterRows();
      error_ = kNoSlack;
    }
    if (queries != nullptr)
      rearrange(rows.points, tree_order(rows.points, threads), threads);
  }
  if (filter_.num_places == 0)
    filter_ = pack(scale_, points_, threads, progress);
  double error = filter_.error;
  if (queries != nullptr) {
    rows.filter = pack(scale_, *queries, threads, progress);
    error = std::max(error, rows.filter.error);
  }
  if (error > error_) {
    error_ = error;
    set_slack(scale_, error, points_.padded);
    complete(scale_, filter_);
  }
  if (queries != nullptr) complete(scale_, rows.filter);
}

HeldPoints::Rows HeldPoints::fit_rows(const Request& request,
                                      const RowSource* queries,
                                      Progress* progress,
                                      bool shuffle_queries) {
  prepare(request, progress);
  Rows rows;
  rows.are_points = queries == nullptr;
  if (queries != nullptr)
    rows.points = prepare_points(*queries, recipe_of(request, exponent_),
                                 request.query_skip, shuffle_queries,
                                 kernels_.prepare_row, request.num_threads,
                                 progress, false);
  return rows;
}

HeldPoints::Rows HeldPoints::fit(const Request& request,
                                 const RowSource* queries, const FilterUse* use,
                                 Progress* progress, bool shuffle_queries) {
  // A filter is seeded by random points.
  if (use != nullptr && in_tree_) forget();
  Rows rows = fit_rows(request, queries, progress, shuffle_queries);
  if (use != nullptr && !is_empty(rows))
    fit_filter(request, *use, rows, progress);
  return rows;
}

/// Looks at the keys and the tree first, because the gain from the filter
/// depends on the share of pairs that they leave.
HeldPoints::Rows HeldPoints::fit_sorted(const Request& request,
                                        const RowSource* queries, FilterUse use,
                                        const Within* within,
                                        Progress* progress, Sorted& sorted) {
  Rows rows = fit_rows(request, queries, progress, false);
  if (is_empty(rows)) return rows;
  sorted = look_at_keys(request, rows.are_points ? nullptr : &rows.points,
                        within, progress);
  const bool in_tree = sorted.kind == KeyKind::box;
  if (in_tree_ && !in_tree) {
    // Other searches need shuffled points, whose keys are in another order.
    forget();
    rows = fit_rows(request, queries, progress, false);
    sorted = Sorted();
  }
  use.share = sorted.share;
  fit_filter(request, use, rows, progress, in_tree);
  if (scale_.form->reach == nullptr) sorted = Sorted();
  if (!sorted.pays()) return rows;
  const int threads = request.num_threads;
  const auto order = [&](Ordered& of, const PreparedPoints& points,
                         const FilterRows& filter) {
    if (in_tree)
      of.boxes = KeyTiles(*metric_, scale_, points, threads);
    else
      of.sorted.reset(new SortedPoints(sorted.kind, std::move(of.keys), points,
                                       filter, threads));
  };
  order(sorted.points, points_, filter_);
  if (!rows.are_points) order(sorted.queries, rows.points, rows.filter);
  return rows;
}

HeldPoints::Sorted HeldPoints::look_at_keys(const Request& request,
                                            const PreparedPoints* queries,
                                            const Within* within,
                                            Progress* progress) const {
  const AskedOrder asked = asked_order(request);
  const bool any = asked == AskedOrder::as_it_pays;
  const PreparedPoints& rows = queries != nullptr ? *queries : points_;
  const KeyKind kind =
      any || asked == AskedOrder::sorted ? key_kind(*metric_) : KeyKind::none;
  const bool boxes = (any || asked == AskedOrder::tree) &&
                     has_boxes(*metric_) && points_.held() && rows.held();
  Sorted sorted;
  if ((kind == KeyKind::none && !boxes) ||
      (any && !keys_may_pay(rows, points_)))
    return sorted;
  const int threads = request.num_threads;
  const DistanceRule rule(*metric_, exponent_);
  const std::vector<SampledRow> sample =
      within != nullptr
          ? rows_within(*metric_, rule, limits_of(*within, rows))
          : sampled_rows(*metric_, rule, kernels_, points_, queries, request.k);
  if (kind != KeyKind::none) {
    sorted.kind = kind;
    sorted.points.keys = keys_of(kind, points_, threads, progress);
    if (queries != nullptr)
      sorted.queries.keys = keys_of(kind, *queries, threads, progress);
    sorted.share = share_by_keys(
        kind, sample,
        queries != nullptr ? sorted.queries.keys : sorted.points.keys,
        sorted.points.keys);
  }
  if (boxes) {
    const double share =
        share_by_boxes(*metric_, sample, points_, queries, threads);
    if (kind == KeyKind::none || share < sorted.share) {
      sorted = Sorted();
      sorted.kind = KeyKind::box;
      sorted.share = share;
    }
  }
  if (any && !keys_pay(sorted.share)) return Sorted();
  return sorted;
}

void HeldPoints::find_neighbours(const Request& asked, const RowSource* queries,
                                 const Neighbours& out, Progress* progress,
                                 Stats* stats) {
  const Request request = suited_to(asked, queries);
  if (request.groups != nullptr && queries != nullptr)
    throw std::invalid_argument("queries by groups are no search of this");
  const Clock::time_point start = Clock::now();
  const bool filtered = !few_queries(request, queries);
  const FilterUse use = use_for_lists(request);
  Sorted sorted;
  const bool by_keys = filtered && request.groups == nullptr;
  const Rows fitted =
      by_keys ? fit_sorted(request, queries, use, nullptr, progress, sorted)
              : fit(request, queries, filtered ? &use : nullptr, progress);
  if (block_of(fitted).size() == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, AnswerRow::of(i), request.k);
    return;
  }
  PlanInput input = plan_input(request, points_.size(), points_.num_features,
                               fitted.are_points ? 0 : fitted.points.size());
  input.rows_made = !points_.held();
  const Plan plan = plan_for(input, sorted.pays());
  const PointBlock all_columns =
      in_order(columns(), sorted, sorted.points, plan);
  const PointBlock all_rows =
      fitted.are_points
          ? all_columns
          : in_order(block_of(fitted), sorted, sorted.queries, plan);
  const DistanceRule rule(*metric_, exponent_);
  FilterScale none;
  none.form = &kNoFilter;
  tell_chosen(progress, {filtered ? scale_.numbers() : FilterNumbers::none,
                         sorted.pays()});
  Search search(request, plan, kernels_, rule, filtered ? scale_ : none,
                fitted.are_points, all_rows.size(), progress);
  const double prepared = seconds_since(start);
  std::int64_t redone = 0;
  if (request.groups != nullptr) {
    meet_groups(request, search);
  } else {
    search.seed({{&all_rows, &all_columns}}, kPrepared, kSeeded,
                asked_for_haste(request) ? Search::Seeds::hasty
                                         : Search::Seeds::likely);
    Ordered& order = sorted.of(fitted);
    if (order.sorted) {
      std::vector<double> limit(static_cast<std::size_t>(all_rows.size()));
      for (std::int64_t at = 0; at < all_rows.size(); ++at)
        limit[static_cast<std::size_t>(all_rows.place(at).value)] =
            search.limit(all_rows, at);
      order.sort_by_limits(limit);
    }
    search.meet({{&all_rows, &all_columns}}, kSeeded, 1.0);
    redone = search.fill_short({&all_rows, &all_columns});
  }
  const double searched = seconds_since(start);
  if (!search.emit(out, all_rows.points->order.place, all_rows.points,
                   &points_))
    throw RangeFailure();
  note(stats, search.counts(), prepared, searched, seconds_since(start));
  if (stats == nullptr) return;
  stats->filter =
      stats->pairs_filtered > 0 ? scale_.numbers() : FilterNumbers::none;
  stats->rows_recomputed = static_cast<double>(redone);
}

/// Compares every two groups of the points, and a group with itself where its
/// points have neighbours there. Both points of a pair collect what they find
/// in lists of their own, so that each pair is compared once.
void HeldPoints::meet_groups(const Request& request, Search& search) const {
  const PointGroups& groups = *request.groups;
  const std::size_t count = static_cast<std::size_t>(groups.count());
  const bool each = groups.lists() == PointGroups::Lists::each;
  const bool together = groups.lists() == PointGroups::Lists::together;
  if (together && count > kMostGroupsMet)
    return search.meet_apart(columns(), kPrepared, 1.0);
  std::vector<std::vector<std::int32_t>> places(count);
  for (std::int32_t p = 0; p < points_.size(); ++p) {
    const PointId id = points_.order.id_at(Place{p});
    places[static_cast<std::size_t>(
               groups.of()[static_cast<std::size_t>(id.value)])]
        .push_back(p);
  }
  std::vector<FilterRows> filter(count);
  std::vector<PointBlock> block(count);
  for (std::size_t g = 0; g < count; ++g) {
    filter[g] = reordered(filter_, places[g], request.num_threads);
    block[g].points = &points_;
    block[g].filter = &filter[g];
    block[g].place_at = &places[g];
    block[g].list = together ? 0 : static_cast<std::int64_t>(g);
  }
  const auto largest_but = [&](std::size_t g) {
    const PointBlock* largest = nullptr;
    for (std::size_t h = 0; h < count; ++h)
      if (h != g && (largest == nullptr || block[h].size() > largest->size()))
        largest = &block[h];
    return largest;
  };
  std::vector<Search::Meeting> seeds, meetings;
  for (std::size_t g = 0; g < count; ++g) {
    if (together) seeds.push_back({&block[g], largest_but(g)});
    for (std::size_t h = each ? g : g + 1; h < count; ++h) {
      meetings.push_back({&block[g], &block[h]});
      if (together) continue;
      seeds.push_back({&block[g], &block[h]});
      if (g != h) seeds.push_back({&block[h], &block[g]});
    }
  }
  search.seed(seeds, kPrepared, kSeeded);
  search.meet(meetings, kSeeded, 1.0);
}

void HeldPoints::find_within(const Request& asked, const Within& within,
                             const RowSource* queries, WithinAnswer& answer,
                             Progress* progress, Stats* stats) {
  const Request request = suited_to(asked, queries);
  const Clock::time_point start = Clock::now();
  Sorted sorted;
  const Rows fitted = fit_sorted(request, queries, use_within(request), &within,
                                 progress, sorted);
  WithinCollector collector(
      request, within, (queries != nullptr ? *queries : whole_).num_points(),
      fitted.are_points);
  if (is_empty(fitted)) {
    collector.allocate(answer);
    return;
  }
  PlanInput input = plan_input(request, points_.size(), points_.num_features,
                               fitted.are_points ? 0 : fitted.points.size());
  input.k = 1;
  input.rows_made = !points_.held();
  const Plan plan = plan_for(input, sorted.pays());
  const PointBlock all_columns =
      in_order(columns(), sorted, sorted.points, plan);
  const PointBlock all_rows =
      fitted.are_points
          ? all_columns
          : in_order(block_of(fitted), sorted, sorted.queries, plan);
  Ordered& order = sorted.of(fitted);
  if (order.sorted)
    order.sort_by_limits(limits_of(within, *block_of(fitted).points));
  const DistanceRule rule(*metric_, exponent_);
  WithinSearch search(request, within, plan, kernels_, rule, scale_, all_rows,
                      all_columns, progress);
  const double prepared = seconds_since(start);
  search.run(collector, 0.0, 0.5);
  if (!collector.allocate(answer)) search.run(collector, 0.5, 1.0);
  const double searched = seconds_since(start);
  collector.finish();
  note(stats, search.counts(), prepared, searched, seconds_since(start));
  if (stats != nullptr) stats->filter = scale_.numbers();
}

}  // namespace cpu
}  // namespace fsknn
