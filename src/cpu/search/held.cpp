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
  stats->pairs_pruned = counts.pruned;
  stats->pairs_exact = counts.exact;
  stats->seconds_prepare = prepared;
  stats->seconds_search = searched - prepared;
  stats->seconds_emit = emitted - searched;
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

/// Whether groups of points meet each other as blocks. Otherwise all points are
/// one block, and pairs within a group are omitted.
bool met_as_blocks(const PointGroups& groups) {
  return groups.lists() != PointGroups::Lists::together ||
         static_cast<std::size_t>(groups.count()) <= kMostGroupsMet;
}

}  // namespace

HeldPoints::HeldPoints(const Request& asked, const RowSource& points)
    : whole_(points),
      asked_metric_(*asked.metric),
      skip_(asked.skip),
      weights_(asked.weights),
      covariates_(asked.covariates),
      kernels_(choose_kernels(asked.instruction_set)),
      metric_(&asked_metric_) {
  if (asked.na_pairwise)
    throw std::invalid_argument("points with missing values are not held");
  unfiltered_.scale.form = &kNoFilter;
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
  for (std::shared_ptr<Packed>& packed : packed_) packed.reset();
  keys_ = PointKeys();
  low_keys_ = std::vector<double>();
  of_graph_ = of_queries_ = SampledOrder();
  points_ = PreparedPoints();
}

double HeldPoints::bytes() const {
  double sum = points_.bytes() + 8.0 * static_cast<double>(low_keys_.size()) +
               16.0 * static_cast<double>(keys_.size());
  for (int i = 0; i < 2; ++i) {
    const Packed* const packed = packed_[i].get();
    if (packed == nullptr || (i == 1 && packed == packed_[0].get())) continue;
    sum += packed->rows.bytes();
    if (packed->sorted != nullptr) sum += packed->sorted->filter().bytes();
    if (packed->boxes != nullptr) sum += packed->boxes->bytes();
  }
  return sum;
}

/// After the order of the rows and columns was made.
void HeldPoints::span_chunks(Rows& rows, std::int64_t num_columns,
                             const Plan& plan) {
  if (!rows.is_ordered()) return;
  const auto spans = [&](const KeyTiles& tiles, std::int64_t count) {
    return std::unique_ptr<ChunkSpans>(
        new ChunkSpans(tiles, count, plan.chunk_size));
  };
  if (!rows.are_points)
    rows.column_spans = spans(rows.column_tiles(), num_columns);
  rows.spans = spans(rows.row_tiles(),
                     rows.are_points ? num_columns : rows.points.size());
}

PointBlock HeldPoints::columns(const Rows& rows) const {
  PointBlock block;
  block.points = &points_;
  block.filter = &rows.columns->rows;
  if (rows.sorted != nullptr) {
    const SortedPoints& sorted =
        rows.are_points ? *rows.sorted : *rows.columns->sorted;
    block.filter = &sorted.filter();
    block.place_at = &sorted.place_at();
  }
  block.spans = (rows.are_points ? rows.spans : rows.column_spans).get();
  return block;
}

PointBlock HeldPoints::block_of(const Rows& rows) const {
  if (rows.are_points) return columns(rows);
  PointBlock block;
  block.points = &rows.points;
  block.filter = &rows.filter;
  if (rows.sorted != nullptr) {
    block.filter = &rows.sorted->filter();
    block.place_at = &rows.sorted->place_at();
  }
  block.spans = rows.spans.get();
  return block;
}

/// Returns the request with the metric that suits the points and the queries,
/// and with their largest magnitude.
Request HeldPoints::suited_to(const Request& asked, const RowSource* queries) {
  if (!is_same_metric(*asked.metric, asked_metric_) ||
      asked.weights != weights_ || asked.covariates != covariates_ ||
      asked.skip != skip_ || asked.na_pairwise)
    throw std::invalid_argument("held points are searched as they are held");
  Request request = asked;
  if (asked_metric_.is_table())
    asked_metric_ = for_samples(asked_metric_, source().num_features());
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

/// Whether the packed points serve this use and these rows as they are.
bool HeldPoints::serves(const Packed* packed, const FilterUse& use,
                        const Rows& rows, int num_threads) const {
  return packed != nullptr && packed->use.bits == use.bits &&
         (rows.are_points || reaches(packed->scale, rows.points, num_threads));
}

/// Packs points and queries for the filter. If the queries exceed the scale
/// (reaches(), filter/scale.hpp), both together get a new one, and the points
/// are packed again. So the bounds hold for any queries. If their errors exceed
/// the slack, it is widened and the points' numbers are updated. The best form
/// for lists may differ from that for pairs within a distance, and then the
/// points are kept in both. in_tree: whether points and queries are first put
/// in the order of a tree, if the form has limits for its boxes.
///
/// A search that fails or is stopped leaves nothing that is not finished.
void HeldPoints::fit_filter(const Request& request, const FilterUse& use,
                            Rows& rows, Progress* progress, bool in_tree) {
  const int threads = request.num_threads;
  const PreparedPoints* queries = rows.are_points ? nullptr : &rows.points;
  std::shared_ptr<Packed>& kept = packed_for(use);
  const bool ready = serves(kept.get(), use, rows, threads);
  FilterScale scale;
  if (!ready) {
    scale = choose_scale(*metric_, DistanceRule(*metric_, exponent_), kernels_,
                         points_, queries, threads, use);
  } else if (in_tree && !in_tree_ && kept->scale.form->reach != nullptr) {
    // The same scale, for points in another order.
    scale = std::move(kept->scale);
    for (std::shared_ptr<Packed>& packed : packed_) packed.reset();
  }
  const bool by_boxes =
      in_tree &&
      (kept != nullptr && ready ? kept->scale : scale).form->reach != nullptr;
  if (by_boxes && !in_tree_) put_in_tree(threads);
  if (by_boxes && queries != nullptr)
    rearrange(rows.points, tree_order(rows.points, threads), threads);
  if (!ready || kept == nullptr) {
    const std::shared_ptr<Packed>& other = packed_[use.k > 0 ? 1 : 0];
    kept.reset();
    if (other != nullptr && other->scale.form == scale.form &&
        serves(other.get(), use, rows, threads)) {
      kept = other;
    } else {
      const std::shared_ptr<Packed> fresh = std::make_shared<Packed>();
      fresh->rows = pack(scale, points_, threads, progress);
      fresh->scale = std::move(scale);
      fresh->use = use;
      kept = fresh;
    }
  }
  Packed& packed = *kept;
  double error = packed.rows.error;
  if (queries != nullptr) {
    rows.filter = pack(packed.scale, *queries, threads, progress);
    error = std::max(error, rows.filter.error);
  }
  if (error > packed.error) {
    packed.error = error;
    packed.sorted.reset();
    set_slack(packed.scale, error, points_.padded);
    complete(packed.scale, packed.rows);
  }
  if (queries != nullptr) complete(packed.scale, rows.filter);
  rows.columns = &packed;
}

/// Their packed forms and keys, which are in the order of their places, go.
void HeldPoints::put_in_tree(int num_threads) {
  const std::vector<std::int32_t> order = tree_order(points_, num_threads);
  for (std::shared_ptr<Packed>& packed : packed_) packed.reset();
  keys_ = PointKeys();
  low_keys_ = std::vector<double>();
  is_prepared_ = false;  // if it is stopped half-way
  rearrange(points_, order, num_threads);
  is_prepared_ = in_tree_ = true;
}

HeldPoints::Rows HeldPoints::fit_rows(const Request& request,
                                      const RowSource* queries,
                                      Progress* progress,
                                      bool shuffle_queries) {
  prepare(request, progress);
  Rows rows;
  rows.are_points = queries == nullptr;
  rows.columns = &unfiltered_;
  if (queries != nullptr)
    rows.points = prepare_points(*queries, recipe_of(request, exponent_),
                                 request.query_skip, shuffle_queries,
                                 kernels_.prepare_row, request.num_threads,
                                 progress, false);
  return rows;
}

/// Looks at the keys and the tree first, because the gain from the filter
/// depends on the share of pairs that they leave.
HeldPoints::Rows HeldPoints::fit_sorted(const Request& request,
                                        const Asked& search, FilterUse use,
                                        Progress* progress) {
  // Rows that are seeds of the points are shuffled.
  Rows rows = fit_rows(request, search.queries, progress, search.both);
  const int threads = request.num_threads;
  // Few queries do not repay the packing of all points.
  if (is_empty(rows) || (search.within == nullptr && !search.both &&
                         few_queries(request, search.queries) &&
                         !serves(packed_for(use).get(), use, rows, threads)))
    return rows;
  PointKeys query_keys;
  Order order = choose_order(request, rows, search, query_keys, progress);
  if (in_tree_ && order.kind != KeyKind::box) {
    // Other searches are seeded by shuffled points, and their keys are in
    // another order.
    forget();
    rows = fit_rows(request, search.queries, progress, search.both);
    order = Order();
  }
  use.share = order.share;
  const bool by_boxes = order.kind == KeyKind::box;
  const bool in_groups =
      request.groups != nullptr && met_as_blocks(*request.groups);
  fit_filter(request, use, rows, progress, by_boxes && !in_groups);
  Packed& packed = *packed_for(use);
  if (order.kind == KeyKind::none || packed.scale.form->reach == nullptr)
    return rows;
  if (in_groups) {
    rows.in_group_trees = true;
    return rows;
  }
  rows.order = order.kind;
  const auto make_sorted = [&](PointKeys keys, const PreparedPoints& points,
                               const FilterRows& filter) {
    return std::unique_ptr<SortedPoints>(
        new SortedPoints(order.kind, std::move(keys), points, filter, threads));
  };
  const auto make_boxes = [&](const PreparedPoints& points) {
    return KeyTiles(*metric_, packed.scale, points, nullptr, threads);
  };
  if (by_boxes) {
    if (packed.boxes == nullptr)
      packed.boxes.reset(new KeyTiles(make_boxes(points_)));
    if (!rows.are_points) rows.boxes = make_boxes(rows.points);
  } else if (rows.are_points) {
    rows.sorted = make_sorted(keys_, points_, packed.rows);
  } else {
    if (packed.sorted == nullptr)
      packed.sorted = make_sorted(keys_, points_, packed.rows);
    rows.sorted = make_sorted(std::move(query_keys), rows.points, rows.filter);
  }
  return rows;
}

/// Samples pairs for lists of the same k once: a sample may take longer than
/// the search of some queries. Points in the order of a tree stay in it, where
/// no other order is asked for.
HeldPoints::Order HeldPoints::choose_order(const Request& request,
                                           const Rows& rows,
                                           const Asked& search,
                                           PointKeys& query_keys,
                                           Progress* progress) {
  const AskedOrder asked = asked_order(request);
  const bool any = asked == AskedOrder::as_it_pays;
  const PointGroups* const groups = request.groups.get();
  const KeyKind kind = groups == nullptr && (any || asked == AskedOrder::sorted)
                           ? key_kind(*metric_)
                           : KeyKind::none;
  // Many small groups have no boxes of their own.
  const bool boxes =
      (any || asked == AskedOrder::tree) && has_boxes(*metric_) &&
      points_.held() && points_of(rows).held() &&
      (groups == nullptr || !met_as_blocks(*groups) ||
       static_cast<std::size_t>(groups->count()) <= kMostGroupsMet);
  if (kind == KeyKind::none && !boxes) return Order();
  if (any && boxes && in_tree_) return {KeyKind::box, tree_share_};
  SampledOrder& known = rows.are_points ? of_graph_ : of_queries_;
  const bool may_be_known =
      search.within == nullptr && !search.both && groups == nullptr;
  const bool is_known =
      may_be_known && known.k == request.k && known.asked == asked;
  if (any && (is_known ? known.order.kind == KeyKind::none
                       : !keys_may_pay(*metric_, points_of(rows), points_)))
    return Order();
  const int threads = request.num_threads;
  if (kind != KeyKind::none &&
      !(is_known && known.order.kind == KeyKind::box)) {
    if (keys_.empty()) {
      keys_ = keys_of(kind, points_, threads, progress);
      low_keys_ = low_ends(keys_);
    }
    if (!rows.are_points)
      query_keys = keys_of(kind, rows.points, threads, progress);
  }
  if (is_known) return known.order;
  Order order = sample_order(request, rows, search, kind, boxes, query_keys);
  if (any && !keys_pay(order.share)) order = Order();
  if (order.kind == KeyKind::box) tree_share_ = order.share;
  if (may_be_known) known = {request.k, asked, order};
  return order;
}

/// Returns the order that leaves the smaller share of pairs.
HeldPoints::Order HeldPoints::sample_order(const Request& request,
                                           const Rows& rows,
                                           const Asked& search, KeyKind kind,
                                           bool boxes,
                                           const PointKeys& query_keys) const {
  const PreparedPoints* const queries =
      rows.are_points ? nullptr : &rows.points;
  const PointGroups* const groups = request.groups.get();
  const DistanceRule rule(*metric_, exponent_);
  const std::vector<SampledRow> sample =
      search.within != nullptr
          ? rows_within(*metric_, rule,
                        limits_of(*search.within, points_of(rows)))
          : sampled_rows(*metric_, rule, kernels_, points_, queries, groups,
                         request.k);
  Order order;
  if (kind != KeyKind::none)
    order = {kind,
             share_by_keys(kind, sample, rows.are_points ? keys_ : query_keys,
                           low_keys_)};
  if (!boxes) return order;
  BoxedPoints boxed = {points_, queries, queries == nullptr || search.both};
  if (groups != nullptr && met_as_blocks(*groups))
    boxed.trees = places_of(*groups);
  const double share =
      share_by_boxes(*metric_, sample, boxed, request.num_threads);
  if (kind == KeyKind::none || share < order.share)
    order = {KeyKind::box, share};
  return order;
}

void HeldPoints::find_neighbours(const Request& asked, const RowSource* queries,
                                 const Neighbours& out, Progress* progress,
                                 Stats* stats) {
  const Request request = suited_to(asked, queries);
  if (request.groups != nullptr && queries != nullptr)
    throw std::invalid_argument("queries by groups are no search of this");
  const Clock::time_point start = Clock::now();
  const FilterUse use = use_for_lists(request);
  Rows fitted = fit_sorted(request, {queries}, use, progress);
  const FilterScale& scale = fitted.columns->scale;
  if (points_of(fitted).size() == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, AnswerRow::of(i), request.k);
    return;
  }
  PlanInput input = plan_input(request, points_.size(), points_.num_features,
                               fitted.are_points ? 0 : fitted.points.size());
  input.rows_made = !points_.held();
  const bool is_ordered = fitted.is_ordered() || fitted.in_group_trees;
  if (is_ordered) input.most_chunks = kMostListed;
  const Plan plan = plan_cpu(input);
  span_chunks(fitted, points_.size(), plan);
  const PointBlock all_columns = columns(fitted);
  const PointBlock all_rows = block_of(fitted);
  const DistanceRule rule(*metric_, exponent_);
  tell_chosen(progress, {scale.numbers(), is_ordered});
  Search search(request, plan, kernels_, rule, scale, fitted.are_points,
                all_rows.size(), progress);
  const double prepared = seconds_since(start);
  std::int64_t redone = 0;
  if (request.groups != nullptr) {
    meet_groups(request, plan, fitted, search);
  } else {
    search.seed({{&all_rows, &all_columns}}, kPrepared, kSeeded,
                asked_for_haste(request) ? Search::Seeds::hasty
                                         : Search::Seeds::likely);
    if (fitted.sorted != nullptr) {
      std::vector<double> limit(static_cast<std::size_t>(all_rows.size()));
      for (std::int64_t at = 0; at < all_rows.size(); ++at)
        limit[static_cast<std::size_t>(all_rows.place(at).value)] =
            search.limit(all_rows, at);
      fitted.sort_by_limits(limit);
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
      stats->pairs_filtered > 0 ? scale.numbers() : FilterNumbers::none;
  stats->rows_recomputed = static_cast<double>(redone);
}

std::vector<std::vector<std::int32_t>> HeldPoints::places_of(
    const PointGroups& groups) const {
  std::vector<std::vector<std::int32_t>> places(
      static_cast<std::size_t>(groups.count()));
  for (std::int32_t p = 0; p < points_.size(); ++p) {
    const PointId id = points_.order.id_at(Place{p});
    places[static_cast<std::size_t>(
               groups.of()[static_cast<std::size_t>(id.value)])]
        .push_back(p);
  }
  return places;
}

/// Compares every two groups of the points, and a group with itself where its
/// points have neighbours there. Both points of a pair collect what they find
/// in lists of their own, so that each pair is compared once.
void HeldPoints::meet_groups(const Request& request, const Plan& plan,
                             const Rows& rows, Search& search) const {
  const PointBlock all = columns(rows);
  const PointGroups& groups = *request.groups;
  const std::size_t count = static_cast<std::size_t>(groups.count());
  const bool each = groups.lists() == PointGroups::Lists::each;
  const bool together = groups.lists() == PointGroups::Lists::together;
  if (!met_as_blocks(groups))
    return search.meet_other_groups(all, kPrepared, 1.0);
  std::vector<std::vector<std::int32_t>> places = places_of(groups);
  std::vector<FilterRows> filter(count);
  std::vector<PointBlock> block(count);
  std::vector<KeyTiles> tiles(count);
  std::vector<std::unique_ptr<ChunkSpans>> spans(count);
  for (std::size_t g = 0; g < count; ++g) {
    if (rows.in_group_trees) {
      places[g] =
          tree_order(points_, std::move(places[g]), request.num_threads);
      tiles[g] = KeyTiles(*metric_, rows.columns->scale, points_, &places[g],
                          request.num_threads);
      spans[g].reset(new ChunkSpans(tiles[g],
                                    static_cast<std::int64_t>(places[g].size()),
                                    plan.chunk_size));
      block[g].spans = spans[g].get();
    }
    filter[g] = reordered(*all.filter, places[g], request.num_threads);
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
  Rows fitted =
      fit_sorted(request, {queries, &within}, use_within(request), progress);
  const FilterScale& scale = fitted.columns->scale;
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
  if (fitted.is_ordered()) input.most_chunks = kMostListed;
  const Plan plan = plan_cpu(input);
  span_chunks(fitted, points_.size(), plan);
  const PointBlock all_columns = columns(fitted);
  const PointBlock all_rows = block_of(fitted);
  if (fitted.sorted != nullptr)
    fitted.sort_by_limits(limits_of(within, points_of(fitted)));
  const DistanceRule rule(*metric_, exponent_);
  WithinSearch search(request, within, plan, kernels_, rule, scale, all_rows,
                      all_columns, progress);
  const double prepared = seconds_since(start);
  search.run(collector, 0.0, 0.5);
  if (!collector.allocate(answer)) search.run(collector, 0.5, 1.0);
  const double searched = seconds_since(start);
  collector.finish();
  note(stats, search.counts(), prepared, searched, seconds_since(start));
  if (stats != nullptr) stats->filter = scale.numbers();
}

}  // namespace cpu
}  // namespace fsknn
