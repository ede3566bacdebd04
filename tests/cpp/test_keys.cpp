// Keys prune only pairs that are far enough, and searches in their order give
// the answers of the definition, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "answers.hpp"
#include "core/base/errors.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/held.hpp"
#include "cpu/search/keys.hpp"
#include "cpu/search/keys_pay.hpp"
#include "cpu/search/tree.hpp"
#include "metric_cases.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

std::vector<const MetricEntry*> keyed_metrics() {
  std::vector<const MetricEntry*> keyed;
  for (const MetricEntry& metric : all_metrics())
    if (key_kind(metric) != KeyKind::none) keyed.push_back(&metric);
  return keyed;
}

std::vector<int> bits_for(const MetricEntry& metric) {
  return key_kind(metric) == KeyKind::norm ? std::vector<int>{16}
                                           : std::vector<int>{16, 8};
}

/// Multiples of one row, some of them of another magnitude: the keys of a pair
/// are as far from each other as its points.
Matrix one_direction(std::int64_t n, std::int64_t d) {
  Matrix m = make("multiples of one row", n, d);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = static_cast<double>(f % 5 + 1) *
                   static_cast<double>(i % 37) * (i % 11 == 0 ? 1e-9 : 1.0);
  return m;
}

/// Rows with different offsets, some of them equal.
Matrix levels(std::int64_t n, std::int64_t d, double spread, unsigned seed) {
  Matrix m = normal("levels", n, d, seed);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = 20.0 + static_cast<double>(i * 7 % n) / 9.0 +
                   spread * m.at(i % 13 == 0 ? 0 : i, f);
  return m;
}

std::vector<Matrix> key_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all = hard_cases(n, d);
  all.push_back(one_direction(n, d));
  all.push_back(levels(n, d, 0.1, 3));
  for (const double level : {1e6, 1e150, 1e300})
    all.push_back(near_empty(n, d, level, 10));
  return all;
}

struct Prepared {
  PreparedPoints points;
  FilterScale scale;
  int exponent = 0;
};

Prepared prepare(const MetricEntry& metric, const Matrix& m, int bits) {
  Prepared p;
  const auto source = m.source();
  p.exponent = matrix_exponent(metric, scan(source, 1).largest);
  Request request;
  request.metric = &metric;
  p.points =
      prepare_points(source, recipe_of(request, p.exponent), unfit(metric, m),
                     true, kBaselineKernels.prepare_row, 1);
  p.scale = choose_scale(metric, DistanceRule(metric, p.exponent),
                         kBaselineKernels, p.points, nullptr, 1, {1, bits});
  set_slack(p.scale, pack(p.scale, p.points, 1).error, p.points.padded);
  return p;
}

/// Counts the pruned pairs, and all pairs, at thresholds that `of_distance`
/// computes from each pair's distance.
template <class OfDistance>
std::pair<std::int64_t, std::int64_t> pruned_by_keys(const MetricEntry& metric,
                                                     const Prepared& p,
                                                     OfDistance of_distance) {
  const DistanceRule rule(metric, p.exponent);
  const Thresholds thresholds(p.scale, metric, rule);
  const KeyKind kind = key_kind(metric);
  const PointKeys keys = keys_of(kind, p.points, 1, nullptr);
  std::int64_t pruned = 0, pairs = 0;
  for (std::int64_t i = 0; i < p.points.size(); ++i)
    for (std::int64_t j = 0; j < p.points.size(); ++j) {
      if (i == j) continue;
      const double distance =
          rule(scalar_sum(metric.accumulation, p.points.row(Place{i}),
                          p.points.row(Place{j}), p.points.padded),
               p.points.sums[i], p.points.sums[j]);
      if (!(distance < HUGE_VAL)) continue;
      const double reach = p.scale.form->reach(
          p.scale, thresholds.keep_up_to(of_distance(distance)));
      pruned += farther(kind, keys[static_cast<std::size_t>(i)],
                        keys[static_cast<std::size_t>(j)], reach);
      ++pairs;
    }
  return {pruned, pairs};
}

}  // namespace

TEST_CASE("keys tell no pair apart at its own distance") {
  for (const std::int64_t d : {1, 2, 13, 64})
    for (const Matrix& hard : key_cases(96, d))
      for (const MetricEntry* metric : keyed_metrics())
        for (const int bits : bits_for(*metric)) {
          const Matrix m = fit(*metric, hard);
          try {
            const Prepared p = prepare(*metric, m, bits);
            if (p.points.size() < 2 || p.scale.form->reach == nullptr) continue;
            CAPTURE(label(*metric, m));
            CAPTURE(bits);
            CHECK(pruned_by_keys(*metric, p, [](double x) {
                    return x;
                  }).first == 0);
          } catch (const RangeFailure&) {
            continue;  // 1e300 and 1e-318 in one matrix have no proportion
          }
        }
}

TEST_CASE(
    "where all of a pair's distance is between its keys, a bit less does") {
  const Matrix m = one_direction(37, 24);
  for (const MetricEntry* metric : keyed_metrics())
    for (const int bits : bits_for(*metric)) {
      const Prepared p = prepare(*metric, m, bits);
      const auto found =
          pruned_by_keys(*metric, p, [](double x) { return 0.99 * x; });
      CAPTURE(metric->name);
      CAPTURE(bits);
      CHECK(static_cast<double>(found.first) >
            0.9 * static_cast<double>(found.second));
    }
}

TEST_CASE("rows of next to nothing have no key, and rows of 0 one") {
  Matrix m = make("small", 4, 3);
  m.at(0, 1) = 1.0;
  m.at(1, 1) = 1e-300;
  m.at(2, 1) = 1e-310;
  Request request;
  for (const MetricEntry* metric : keyed_metrics()) {
    request.metric = metric;
    const auto source = m.source();
    const PreparedPoints points =
        prepare_points(source, recipe_of(request, 0), unfit(*metric, m), true,
                       kBaselineKernels.prepare_row, 1);
    const PointKeys keys = keys_of(key_kind(*metric), points, 1, nullptr);
    const auto key = [&](std::int64_t i) {
      return keys[static_cast<std::size_t>(
          points.order.place_of(PointId{static_cast<std::int32_t>(i)}).value)];
    };
    CHECK(key(0).low <= 1.0);
    CHECK(key(0).low > 0.999);
    CHECK(key(0).high >= 1.0);
    for (const std::int64_t i : {1, 2}) {
      CHECK(key(i).low == -HUGE_VAL);
      CHECK(key(i).high == HUGE_VAL);
    }
    if (metric->least_overlap != nullptr) continue;  // the row is skipped
    CHECK(key(3).low == 0.0);
    CHECK(key(3).high == 0.0);
  }
}

TEST_CASE("what has no key, or no number, is never apart") {
  const KeyRange one = {1.0, 1.0}, two = {2.0, 2.5}, none;
  for (const KeyKind kind : {KeyKind::sum, KeyKind::share, KeyKind::norm}) {
    CHECK(farther(kind, one, two, 0.3));
    CHECK(farther(kind, two, one, 0.3));
    CHECK_FALSE(farther(kind, one, two, 1.0));
    CHECK_FALSE(farther(kind, one, two, HUGE_VAL));
    for (const double reach : {0.0, 0.3, HUGE_VAL, std::nan("")}) {
      CHECK_FALSE(farther(kind, one, none, reach));
      CHECK_FALSE(farther(kind, none, two, reach));
      CHECK_FALSE(farther(kind, none, none, reach));
    }
    CHECK_FALSE(farther(kind, one, {std::nan(""), std::nan("")}, 0.1));
  }
  // (2 - 1) / (2 + 1)
  CHECK(farther(KeyKind::share, one, two, 0.333));
  CHECK_FALSE(farther(KeyKind::share, one, two, 0.334));
}

namespace {

std::vector<const MetricEntry*> boxed_metrics() {
  std::vector<const MetricEntry*> boxed;
  for (const MetricEntry& metric : all_metrics())
    if (has_boxes(metric)) boxed.push_back(&metric);
  return boxed;
}

/// Each row as often as a tile has columns, so that its box is a point.
Matrix repeated(const Matrix& of) {
  Matrix m = make(of.name, of.n * Tile::columns, of.d);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) =
          of.values[static_cast<std::size_t>(f * of.n + i / Tile::columns)];
  return m;
}

/// Rows on the surface of a sphere, on a line, far from 0, and at the border of
/// the data that have a filter.
std::vector<Matrix> box_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all = key_cases(n, d);
  const auto add = [&](const char* name, auto value) {
    Matrix m = normal(name, n, d, 31);
    for (std::int64_t i = 0; i < n; ++i) {
      double square = 0.0;
      for (std::int64_t f = 0; f < d; ++f) square += m.at(i, f) * m.at(i, f);
      for (std::int64_t f = 0; f < d; ++f)
        m.at(i, f) = value(i, f, m.at(i, f), std::sqrt(square));
    }
    all.push_back(m);
  };
  using Int = std::int64_t;
  add("sphere", [](Int, Int, double x, double r) { return x / r; });
  add("line", [](Int i, Int f, double, double) {
    return static_cast<double>(i) * static_cast<double>(f + 1);
  });
  add("axis", [](Int i, Int f, double, double) {
    return f == 0 ? static_cast<double>(i) : 0.5;
  });
  add("offset", [](Int i, Int f, double x, double) {
    return 1e8 + static_cast<double>(f) + 1e-4 * (i % 3 == 0 ? 1.0 : x);
  });
  add("2^159", [](Int i, Int, double x, double r) {
    return 0x1p159 * x / (2 * r) * (i % 2 == 0 ? 1.0 : 0x1p-60);
  });
  add("subnormal", [](Int, Int, double x, double) { return 1e-312 * x; });
  add("one place", [](Int, Int f, double, double) { return 0.1 * (f + 1); });
  add("constant columns",
      [](Int, Int f, double x, double) { return f % 3 == 0 ? x : 7.0; });
  return all;
}

/// Counts the pairs of rows whose boxes are apart at limits that `of_distance`
/// computes from each pair's distance, by spans and by every kernel.
template <class OfDistance>
std::pair<std::int64_t, std::int64_t> pruned_by_boxes(const MetricEntry& metric,
                                                      const Matrix& rows,
                                                      int bits,
                                                      OfDistance of_distance) {
  const Matrix m = repeated(rows);
  Prepared p = prepare(metric, m, bits);
  if (p.scale.form->reach == nullptr || p.points.size() < m.n) return {0, 0};
  const PointOrder order = p.points.order;
  std::vector<std::int32_t> own;
  for (std::int64_t i = 0; i < m.n; ++i)
    own.push_back(order.place[static_cast<std::size_t>(i)]);
  rearrange(p.points, own, 2);
  const DistanceRule rule(metric, p.exponent);
  const Thresholds thresholds(p.scale, metric, rule);
  const KeyTiles tiles(metric, p.scale, p.points, nullptr, 2);
  std::int64_t pruned = 0, pairs = 0;
  for (std::int64_t i = 0; i < rows.n; ++i)
    for (std::int64_t j = 0; j < rows.n; ++j) {
      const std::int64_t at = i * Tile::columns, other = j * Tile::columns;
      const double distance =
          rule(scalar_sum(metric.accumulation, p.points.row(Place{at}),
                          p.points.row(Place{other}), p.points.padded),
               p.points.sums[at], p.points.sums[other]);
      if (!(distance < HUGE_VAL)) continue;
      const std::int32_t threshold =
          thresholds.keep_up_to(of_distance(distance));
      const float limit = limit_of(tiles, p.scale, &threshold, 1);
      const bool found = tiles.farther(tiles.of(at, Tile::columns),
                                       tiles.of(other, Tile::columns), limit);
      pruned += found;
      ++pairs;
      for (const Kernels* kernels : available_kernels()) {
        const std::vector<float> limits(Tile::panel, limit);
        const std::int64_t tile = at / Tile::rows;
        const auto near_box = [&](const float* box) {
          return kernels->near_boxes(tiles.rule().gaps,
                                     tiles.row_boxes(tile / Tile::panel),
                                     limits.data(), box, -1.0f, tiles.width());
        };
        std::uint32_t near = 0;
        if (tiles.rule().has_plain()) near |= near_box(tiles.column_box(other));
        if (tiles.rule().has_mirrored()) {
          std::vector<float> box(static_cast<std::size_t>(2 * tiles.width()));
          tiles.mirror_column_box(other, box.data());
          near |= near_box(box.data());
        }
        const bool is_near = (near >> tile % Tile::panel & 1) != 0;
        CAPTURE(kernels->name);
        // Near the limit, fused operations may round the other way.
        if (of_distance(1.0) == 1.0) CHECK(is_near);
        if (found != !is_near) CHECK(of_distance(1.0) < 1.0);
      }
    }
  return {pruned, pairs};
}

}  // namespace

TEST_CASE("boxes tell no pair apart at its own distance") {
  for (const std::int64_t d : {1, 2, 13, 64})
    for (const Matrix& hard : box_cases(20, d))
      for (const MetricEntry* metric : boxed_metrics())
        for (const int bits : {16, 8}) {
          const Matrix m = fit(*metric, hard);
          CAPTURE(label(*metric, m));
          CAPTURE(bits);
          const auto own = [](double x) { return x; };
          CHECK(pruned_by_boxes(*metric, m, bits, own).first == 0);
        }
}

TEST_CASE("boxes that are points tell pairs apart just below their distance") {
  for (const MetricEntry* metric : boxed_metrics())
    for (const std::int64_t d : {1, 5, 50}) {
      // Few features have few correlations.
      if (metric->is_unit_dot() && d < 5) continue;
      const Matrix m = normal("normal", 20, d, 33);
      const auto less = [](double x) { return 0.995 * x; };
      const auto found = pruned_by_boxes(*metric, m, 16, less);
      CAPTURE(metric->name);
      CAPTURE(d);
      CHECK(found.second == 400);
      CHECK(found.first > 360);
    }
}

TEST_CASE("boxes hold their points, and what is no number is anywhere") {
  Matrix m = normal("normal", 100, 3, 34);
  m.at(40, 1) = 1e300;
  Prepared p = prepare(find_metric("chebyshev", "signed"), m, 16);
  p.scale.centre = Buffer<double>();
  p.scale.unit = 1.0;
  p.points.rows[50 * p.points.padded + 2] = std::nan("");
  p.points.rows[50 * p.points.padded] = HUGE_VAL;
  const KeyTiles tiles(find_metric("chebyshev", "signed"), p.scale, p.points,
                       nullptr, 1);
  for (std::int64_t i = 0; i < p.points.size(); ++i)
    for (std::int64_t f = 0; f < 3; ++f) {
      const double x = p.points.row(Place{i})[f];
      const double y = std::min(x, 0x1p40);
      const float* const box = tiles.column_box(i);
      const std::int64_t tile = i / Tile::rows;
      const float* const own =
          tiles.row_boxes(tile / Tile::panel) + tile % Tile::panel;
      for (const float low : {box[2 * f], own[2 * f * Tile::panel]}) {
        CHECK(low < (x == x ? y : -0x1p39));
        CHECK(low > -0x1p41);
      }
      for (const float high :
           {box[2 * f + 1], own[(2 * f + 1) * Tile::panel]}) {
        CHECK(high > (x == x ? y : 0x1p39));
        CHECK(high < 0x1p41);
      }
    }
}

TEST_CASE("a tree's order has each point once, near ones together") {
  for (const std::int64_t n : {1, 7, 8, 9, 48, 49, 100, 1000, 3000}) {
    const Matrix m = normal("normal", n, 4, 35);
    Prepared p = prepare(find_metric("euclidean", "signed"), m, 16);
    const std::vector<std::int32_t> order = tree_order(p.points, 2);
    CHECK(order == tree_order(p.points, 1));
    std::vector<std::int32_t> all = order;
    std::sort(all.begin(), all.end());
    for (std::int32_t i = 0; i < n; ++i) CHECK(all[i] == i);
    // The tiles of single points are the tree's.
    std::vector<Place> of;
    for (std::int64_t i = 0; i < n; i += 7) of.push_back(Place{i});
    const std::vector<TreeTiles> tiles =
        tree_tiles(p.points, all_places(p.points), of, 2);
    for (std::size_t i = 0; i < of.size(); ++i) {
      const auto at =
          std::find(order.begin(), order.end(), of[i].value) - order.begin();
      const auto check = [&](std::vector<std::int32_t> tile,
                             std::int64_t size) {
        const auto first = order.begin() + at / size * size;
        std::vector<std::int32_t> all_of(
            first, first + std::min<std::int64_t>(size, order.end() - first));
        std::sort(all_of.begin(), all_of.end());
        std::sort(tile.begin(), tile.end());
        CHECK(tile == all_of);
      };
      check(tiles[i].rows, Tile::rows);
      check(tiles[i].columns, Tile::columns);
    }
    // After it, every place has its point and its row.
    const std::vector<std::int32_t> id = p.points.order.id;
    const double* const before = p.points.row(Place{0});
    const std::vector<double> rows(before,
                                   before + p.points.padded * p.points.size());
    rearrange(p.points, order, 2);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t from = order[static_cast<std::size_t>(i)];
      const PointId point = p.points.order.id_at(Place{i});
      CHECK(point.value == id[static_cast<std::size_t>(from)]);
      CHECK(p.points.order.place_of(point).value == i);
      CHECK(std::equal(rows.begin() + from * p.points.padded,
                       rows.begin() + (from + 1) * p.points.padded,
                       p.points.row(Place{i})));
    }
  }
}

namespace {

/// Compares the nearest of the definition with those of an engine that must use
/// keys or boxes, as the sets say.
void check_nearest(Request r, const Matrix& m, const Matrix* q,
                   const std::vector<std::string>& sets) {
  const auto points = m.source();
  const auto queries = q != nullptr ? q->source() : points;
  const std::int64_t rows = q != nullptr ? q->n : m.n;
  Answer defined(rows, r.k);
  defined.view.correlation = nullptr;
  bool in_range = true;
  try {
    brute_force(r, points, q != nullptr ? &queries : nullptr, defined.view);
  } catch (const RangeFailure&) {
    in_range = false;
  }
  for (const std::string& set : sets) {
    r.instruction_set = set;
    Answer found(rows, r.k);
    found.view.correlation = nullptr;
    CAPTURE(r.instruction_set);
    CAPTURE(label(*r.metric, m));
    try {
      cpu::find_neighbours(r, points, q != nullptr ? &queries : nullptr,
                           found.view, nullptr, nullptr);
      CHECK(in_range);
      CHECK(found == defined);
    } catch (const RangeFailure&) {
      CHECK_FALSE(in_range);
    }
  }
}

/// With these names of instruction sets, the orders that the metric has.
std::vector<std::string> ordered(const MetricEntry& metric,
                                 const std::vector<std::string>& names) {
  std::vector<std::string> sets;
  for (const std::string& name : names) {
    if (key_kind(metric) != KeyKind::none) sets.push_back(name + "/sorted");
    if (has_boxes(metric)) sets.push_back(name + "/tree");
  }
  return sets;
}

std::vector<std::string> all_sets(const MetricEntry& metric) {
  std::vector<std::string> sets;
  for (const Kernels* kernels : available_kernels())
    for (const int bits : bits_for(metric))
      sets.push_back(std::string(kernels->name) + (bits == 8 ? "/8" : "/16"));
  return ordered(metric, sets);
}

/// Metrics that have keys or boxes.
std::vector<const MetricEntry*> pruned_metrics() {
  std::vector<const MetricEntry*> pruned;
  for (const MetricEntry& metric : all_metrics())
    if (key_kind(metric) != KeyKind::none || has_boxes(metric))
      pruned.push_back(&metric);
  return pruned;
}

}  // namespace

TEST_CASE("in order of keys the engine equals the definition") {
  for (const std::int64_t d : {1, 8, 19})
    for (const Matrix& hard : box_cases(250, d))
      for (const MetricEntry* metric : pruned_metrics()) {
        const Matrix m = fit(*metric, hard);
        Request r;
        r.metric = metric;
        r.skip = unfit(*metric, m);
        r.k = 5;
        r.num_threads = 2;
        r.chunk_size = 48;
        check_nearest(r, m, nullptr, all_sets(*metric));
      }
}

TEST_CASE(
    "in order of keys any chunk size, thread count and k gives the same") {
  for (const MetricEntry* metric : pruned_metrics()) {
    const Matrix m = levels(401, 21, 0.5, 20);
    for (const std::int64_t k : {1, 20, 130, 400})
      for (const std::int64_t chunk : {0, 1, 96, 200, 100000})
        for (const int threads : {1, 3}) {
          Request r;
          r.metric = metric;
          r.k = k;
          r.chunk_size = chunk;
          r.num_threads = threads;
          check_nearest(r, m, nullptr, ordered(*metric, {"auto", "auto/8"}));
        }
  }
}

TEST_CASE("queries in order of keys, some of them points, give the same") {
  for (const MetricEntry* metric : pruned_metrics()) {
    const Matrix m = fit(*metric, levels(501, 19, 0.2, 21));
    Matrix q = fit(*metric, normal("queries", 170, 19, 22));
    for (std::int64_t i = 0; i < q.n; ++i)
      for (std::int64_t f = 0; f < q.d; ++f)
        q.at(i, f) = i % 3 == 0
                         ? m.values[static_cast<std::size_t>(f * m.n + 2 * i)]
                         : 20.0 * std::fabs(q.at(i, f)) + 0.1 * i;
    for (const bool self : {false, true})
      for (const std::int64_t chunk : {48, 96, 0}) {
        Request r;
        r.metric = metric;
        r.k = 7;
        r.chunk_size = chunk;
        r.num_threads = 2;
        if (self)
          for (std::int64_t i = 0; i < q.n; ++i)
            r.query_self.push_back(i % 3 == 0 ? static_cast<std::int32_t>(2 * i)
                                              : -1);
        check_nearest(r, m, &q, ordered(*metric, {"auto", "auto/8"}));
      }
  }
}

TEST_CASE(
    "pairs within a distance in order of keys, as the definition has them") {
  for (const MetricEntry* metric : pruned_metrics()) {
    for (const Matrix& hard :
         {levels(260, 11, 0.2, 23), one_direction(260, 11), ties(260, 6, 4, 24),
          near_empty(200, 5, 1e10, 9)}) {
      const Matrix m = fit(*metric, hard);
      Request r;
      r.metric = metric;
      r.skip = unfit(*metric, m);
      const auto source = m.source();
      r.k = 6;
      Answer some(m.n, r.k);
      some.view.correlation = nullptr;
      brute_force(r, source, nullptr, some.view);
      Within within;
      for (const std::size_t at : {100u, 701u, 900u}) {
        // A distance that a pair has; then one for each row.
        within.limits = {some.distance[at]};
        if (at == 900u)
          within.limits.assign(some.distance.begin(),
                               some.distance.begin() + m.n);
        Pairs defined;
        brute_within(r, within, source, nullptr, defined);
        r.chunk_size = 48;
        r.num_threads = 2;
        CAPTURE(label(*metric, m));
        for (const std::string& set : ordered(*metric, {"auto"})) {
          r.instruction_set = set;
          CAPTURE(set);
          Pairs found;
          find_within(r, within, source, nullptr, found, nullptr, nullptr);
          CHECK(found == defined);
          const Matrix q = fit(*metric, levels(60, m.d, 3.0, 25));
          const auto queries = q.source();
          if (within.limits.size() > 1) continue;
          Pairs of_queries, by_definition;
          brute_within(r, within, source, &queries, by_definition);
          find_within(r, within, source, &queries, of_queries, nullptr,
                      nullptr);
          CHECK(of_queries == by_definition);
        }
      }
    }
  }
}

TEST_CASE("held points are searched in any order, one after another") {
  for (const MetricEntry* metric : pruned_metrics()) {
    const Matrix m = fit(*metric, levels(330, 9, 2.0, 28));
    const Matrix q = fit(*metric, levels(70, 9, 2.0, 29));
    const auto source = m.source(), queries = q.source();
    Request r;
    r.metric = metric;
    r.k = 6;
    r.chunk_size = 48;
    r.num_threads = 2;
    HeldPoints held(r, source);
    std::vector<std::string> sets = {"auto/scattered"};
    for (int turn = 0; turn < 2; ++turn)
      for (const std::string& set :
           ordered(*metric, {"auto", "auto/16", "auto/8"})) {
        sets.push_back(set);
        if (turn == 1) sets.push_back("auto/scattered");
      }
    for (const std::string& set : sets)
      for (const RowSource* of : {static_cast<const RowSource*>(nullptr),
                                  static_cast<const RowSource*>(&queries)}) {
        r.instruction_set = set;
        const std::int64_t rows = of != nullptr ? q.n : m.n;
        Answer defined(rows, r.k), found(rows, r.k);
        defined.view.correlation = found.view.correlation = nullptr;
        brute_force(r, source, of, defined.view);
        Stats stats;
        held.find_neighbours(r, of, found.view, nullptr, &stats);
        CAPTURE(label(*metric, m));
        CAPTURE(set);
        CHECK(found == defined);
        // The seeds of near points are certain.
        if (set.find("tree") != std::string::npos)
          CHECK(stats.rows_recomputed == 0);
      }
  }
}

TEST_CASE("keys leave pairs out, where a sample says that they do") {
  for (const MetricEntry* metric : pruned_metrics()) {
    const auto filtered = [&](const Matrix& m, const std::string& set) {
      Request r;
      r.metric = metric;
      r.k = 10;
      r.instruction_set = set;
      const auto source = m.source();
      Answer found(m.n, r.k);
      found.view.correlation = nullptr;
      Stats stats;
      cpu::find_neighbours(r, source, nullptr, found.view, nullptr, &stats);
      return stats.pairs_filtered / (4000.0 * 4000.0 / 2);
    };
    const Matrix apart_rows = levels(4000, 60, 0.1, 26);
    const Matrix alike = fit(*metric, normal("normal", 4000, 60, 27));
    CAPTURE(metric->name);
    // Without their levels these rows are noise.
    if (!metric->is_unit_dot()) CHECK(filtered(apart_rows, "auto") < 0.3);
    CHECK(filtered(apart_rows, "auto/scattered") == doctest::Approx(1.0));
    CHECK(filtered(alike, "auto") == doctest::Approx(1.0));
  }
}

TEST_CASE("boxes leave pairs out, where a sample says that they do") {
  // 32 clusters of the same length, half of them mirror images of the others.
  Matrix m = normal("clusters", 12000, 20, 36);
  Matrix centre = normal("centres", 16, m.d, 37);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) += (i % 32 < 16 ? 20.0 : -20.0) * centre.at(i % 16, f);
  for (const MetricEntry* metric : boxed_metrics()) {
    Request r;
    r.metric = metric;
    r.k = 10;
    const auto source = m.source();
    Answer found(m.n, r.k);
    found.view.correlation = nullptr;
    Stats stats;
    cpu::find_neighbours(r, source, nullptr, found.view, nullptr, &stats);
    CAPTURE(metric->name);
    const double all = 0.5 * 12000.0 * 12000.0;
    CHECK(stats.pairs_filtered < 0.5 * all);
    CHECK(stats.pairs_filtered + stats.pairs_pruned ==
          doctest::Approx(all).epsilon(0.001));
  }
}

TEST_CASE("spans with unbounded keys have a place in the order of chunks") {
  const KeyTiles by_keys;
  Span near, far, any;
  near.key = {0.0, 1.0};
  far.key = {8.0, 9.0};
  CHECK(by_keys.between(near, far) == 16.0f);
  CHECK(by_keys.between(near, any) == 0.0f);
  CHECK(by_keys.between(any, any) == 0.0f);
}
