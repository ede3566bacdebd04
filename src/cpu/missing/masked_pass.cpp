#include "cpu/missing/masked_pass.hpp"

#include <algorithm>

namespace fsknn {
namespace cpu {
namespace {

/// Only products and tables have a filter of pairs with missing values.
bool can_filter(const MetricEntry& metric, std::int64_t num_features) {
  switch (metric.filter) {
    case FilterKind::product: return true;
    case FilterKind::table:
      return masked_tables_filter(metric.table, num_features);
    case FilterKind::none:
    case FilterKind::difference:
    case FilterKind::largest:
    case FilterKind::overlap:
    case FilterKind::bits: return false;
  }
  throw_unknown("filter", static_cast<int>(metric.filter));
}

int threads_of(const Request& asked, const RowSource& points,
               const RowSource* queries) {
  const RowSource& rows = queries != nullptr ? *queries : points;
  return useful_threads(asked.num_threads,
                        static_cast<double>(rows.num_points()) *
                            static_cast<double>(points.num_points()) *
                            static_cast<double>(points.num_features()) / 16);
}

}  // namespace

MaskedWork::MaskedWork(const Request& asked, const RowSource& points,
                       const RowSource* queries, Progress* progress)
    : request(suited(asked, points, queries, progress)),
      rule(request, points, queries, progress),
      kernels(choose_kernels(asked.instruction_set)),
      symmetric(queries == nullptr) {
  request.num_threads = threads_of(asked, points, queries);
  columns = prepare_masked(points, rule, request.skip, true,
                           request.num_threads, progress);
  if (!symmetric)
    own_rows = prepare_masked(*queries, rule, request.query_skip, false,
                              request.num_threads, progress);
}

Plan MaskedWork::plan() const {
  PlanInput input = plan_input(request, columns.size(), columns.num_features,
                               symmetric ? 0 : own_rows.size());
  input.k = std::max<std::int64_t>(1, request.k);
  return plan_cpu(input);
}

void MaskedPairs::tile(const Chunk& at, std::int64_t row, std::int64_t column,
                       int panels, const float* row_threshold,
                       const float* column_threshold, std::uint64_t* keep) {
  if (work_.rule.has_tables()) {
    for (int half = 0; half < kRows; half += Tile::rows)
      tables_.tile(at.row0 + row + half, at.column0 + column, panels,
                   row_threshold + row + half, column_threshold + column,
                   keep + half);
    for (int r = 0; r < kRows; ++r) keep[r] &= wanted(at, row + r, column);
    return;
  }
  for (int half = 0; half < kRows; half += Tile::rows)
    work_.kernels.accumulate(Product::dot, a_.row(at.row0 + row + half),
                             b_.panel(at.column0 + column), panels, a_.steps,
                             tile_ + half * Tile::columns);
  if (may_pass(at, row, column, panels, row_threshold, column_threshold, keep))
    refine(at, row, column, panels, row_threshold, column_threshold, keep);
}

/// Applies step 1 to a tile of 16 rows; returns whether any pair is left.
bool MaskedPairs::may_pass(const Chunk& at, std::int64_t row,
                           std::int64_t column, int panels,
                           const float* row_threshold,
                           const float* column_threshold, std::uint64_t* keep) {
  const std::int64_t i0 = at.row0 + row, j0 = at.column0 + column;
  const std::int64_t row_class = a_.panel_class[i0 / Tile::panel];
  std::int64_t column_class = 0;
  for (int p = 0; p < panels; ++p)
    column_class = std::max<std::int64_t>(column_class,
                                          b_.panel_class[j0 / Tile::panel + p]);
  const std::int64_t of_class = row_class * b_.num_places + j0;
  const float unit = static_cast<float>(masked_unit());
  const bool correlates = work_.rule.correlates();
  std::uint64_t any = 0;
  for (int r = 0; r < kRows; ++r) {
    keep[r] = 0;
    if (row + r >= at.num_rows) continue;
    const std::int64_t i = i0 + r;
    const std::int64_t own = column_class * a_.num_places + i;
    const std::int32_t* sums = tile_ + r * Tile::columns;
    if (correlates)
      keep[r] = work_.kernels.masked_test(
          work_.request.metric->sign, sums, panels, unit,
          {row_threshold + row + r, &a_.error[i], &a_.alpha[own], &a_.w[own]},
          {column_threshold + column, &b_.error[j0], &b_.alpha[of_class],
           &b_.w[of_class]});
    else
      keep[r] = work_.kernels.masked_distance_test(
          sums, panels,
          {row_threshold + row + r, &a_.scale[i], &a_.square_below[i],
           &a_.minus_largest[i], &a_.missing[i], &a_.w[own]},
          {column_threshold + column, &b_.scale[j0], &b_.square_below[j0],
           &b_.minus_largest[j0], &b_.missing[j0], &b_.w[of_class]});
    any |= keep[r];
  }
  return any != 0;
}

/// The columns of a tile with which a row has a pair: those that are there, on
/// the diagonal each pair once.
std::uint64_t MaskedPairs::wanted(const Chunk& at, std::int64_t row,
                                  std::int64_t column) {
  if (row >= at.num_rows) return 0;
  const std::int64_t width = at.num_columns - column;
  const std::uint64_t there =
      width < 64 ? (std::uint64_t{1} << width) - 1 : ~std::uint64_t{0};
  const std::int64_t before = row - column;  // columns before the row's own
  if (!at.diagonal || before < 0) return there;
  return before >= 63 ? 0 : there & ~((std::uint64_t{2} << before) - 1);
}

/// Applies step 2 to a tile.
void MaskedPairs::refine(const Chunk& at, std::int64_t row, std::int64_t column,
                         int panels, const float* row_threshold,
                         const float* column_threshold, std::uint64_t* keep) {
  const std::int64_t i0 = at.row0 + row, j0 = at.column0 + column;
  if (has_short_lists(i0, j0, panels)) {
    for (int r = 0; r < kRows; ++r)
      if ((keep[r] &= wanted(at, row + r, column)) != 0)
        keep[r] =
            close_by_lists(a_, i0 + r, b_, j0, tile_ + r * Tile::columns,
                           keep[r], work_.request.min_pairs,
                           row_threshold[row + r], column_threshold + column);
    return;
  }
  std::uint64_t columns_kept = 0;
  for (int r = 0; r < kRows; ++r) {
    keep[r] &= wanted(at, row + r, column);
    columns_kept |= keep[r];
    if (keep[r] != 0)
      sum_of_columns(work_.kernels, a_, i0 + r, b_, j0, panels, common_.b[r],
                     common_.y[r]);
  }
  for (; columns_kept != 0; columns_kept &= columns_kept - 1) {
    const int c = __builtin_ctzll(columns_kept);
    sum_of_rows(work_.kernels, a_, i0, b_, j0 + c, common_.a[c], common_.x[c]);
  }
  for (int r = 0; r < kRows; ++r)
    for (std::uint64_t mask = keep[r]; mask != 0; mask &= mask - 1) {
      const int c = __builtin_ctzll(mask);
      const MaskedPair pair = {
          i0 + r,          j0 + c,          tile_[r * Tile::columns + c],
          common_.a[c][r], common_.x[c][r], common_.b[r][c],
          common_.y[r][c]};
      if (!stays(pair, row_threshold[row + r], column_threshold[column + c]))
        keep[r] &= ~(std::uint64_t{1} << c);
    }
}

bool MaskedPairs::has_short_lists(std::int64_t row, std::int64_t column,
                                  int panels) const {
  constexpr std::int64_t kShort = 8;
  if (work_.rule.correlates()) return false;
  bool is_short =
      a_.longest_list[static_cast<std::size_t>(row / Tile::panel)] <= kShort;
  for (int p = 0; p < panels; ++p)
    is_short =
        is_short &&
        b_.longest_list[static_cast<std::size_t>(column / Tile::panel + p)] <=
            kShort;
  return is_short;
}

bool MaskedPairs::stays(const MaskedPair& pair, float row_threshold,
                        float column_threshold) const {
  const Request& request = work_.request;
  return work_.rule.correlates()
             ? may_be_near(a_, b_, pair, request.metric->sign,
                           request.min_pairs,
                           std::min(row_threshold, column_threshold))
             : may_be_close(a_, b_, pair, request.min_pairs, row_threshold,
                            column_threshold);
}

void MaskedPairs::exact(const std::vector<Pair>& hits, double* values) const {
  const MaskedPoints& rows = work_.rows();
  const MaskedPoints& columns = work_.columns;
  work_.kernels.masked(work_.rule.terms(), rows.row(Place{row0_}),
                       columns.row(Place{column0_}), columns.padded,
                       hits.data(), static_cast<std::int64_t>(hits.size()),
                       values);
  if (work_.takes_similarities) return;
  for (std::size_t h = 0; h < hits.size(); ++h)
    values[h] = work_.rule.value(values[h]);
}

MaskedPass::MaskedPass(const MaskedWork& work, const Plan& plan, bool filtered,
                       Progress* progress)
    : work_(work),
      plan_(plan),
      filtered_(filtered &&
                can_filter(*work.request.metric, work.columns.num_features)),
      threshold_(new std::atomic<float>[static_cast<std::size_t>(
          plan.padded_queries)]) {
  const MaskedPoints& rows = work.rows();
  const Request& request = work.request;
  for (std::int64_t p = 0; p < plan.padded_queries; ++p)
    threshold_[static_cast<std::size_t>(p)].store(
        p < rows.size() ? MaskedPairs::keep_all() : MaskedPairs::keep_none(),
        std::memory_order_relaxed);
  if (!filtered_) return;
  if (work.rule.has_tables()) {
    const auto pack = [&](const MaskedPoints& points, std::int64_t num_places) {
      return pack_masked_tables(points, work.rule.terms().table, num_places,
                                request.num_threads, progress);
    };
    column_filter_.tables = pack(work.columns, plan.padded_points);
    if (!work.symmetric) row_filter_.tables = pack(rows, plan.padded_queries);
    return;
  }
  const MissingClasses classes =
      missing_classes(work.columns, work.symmetric ? nullptr : &rows);
  if (!work.rule.correlates()) units_ = masked_units(work.columns, work.rule);
  const MaskedPacking packing = {classes, request.min_pairs,
                                 work.rule.correlates() ? nullptr : &units_};
  column_filter_.products = pack_masked(
      work.columns, packing, plan.padded_points, request.num_threads, progress);
  if (!work.symmetric)
    row_filter_.products = pack_masked(rows, packing, plan.padded_queries,
                                       request.num_threads, progress);
}

float MaskedPass::threshold_of(Place row, double distance) const {
  const MaskedRule& rule = work_.rule;
  if (rule.has_tables())
    return masked_table_threshold(distance, rule.terms().table);
  if (rule.correlates()) return masked_threshold(distance);
  return masked_difference_threshold(
      distance, rule, units_,
      static_cast<double>(work_.rows().known[row.value]));
}

}  // namespace cpu
}  // namespace fsknn
