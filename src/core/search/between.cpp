#include "core/search/between.hpp"

#include <stdexcept>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "core/base/select.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"

namespace fsknn {

void check_between(const Request& request, const Between& between,
                   const RowSource& points) {
  // This checks the blocks.
  const BlockRows blocks(points, between.a, between.b);
  const auto refuse = [](const char* why) { throw std::invalid_argument(why); };
  if (request.groups != nullptr || request.na_pairwise ||
      !request.query_self.empty() || !request.query_skip.empty())
    refuse("such a search is not of block by block");
  const std::size_t given = between.limits.size();
  if (given > 0 && given != static_cast<std::size_t>(between.num_rows()))
    refuse("there must be a limit for each point of the blocks");
  for (const double limit : between.limits)
    if (std::isnan(limit)) refuse("a limit must be a number");
}

Request request_of_blocks(const Request& request, const RowSource& points,
                          const BlockRows& rows) {
  Request own = suited(request, points, nullptr);
  own.skip = rows.rows_of(request.skip);
  if (own.largest < 0 && request.metric->matrix_scale != MatrixScale::none)
    own.largest = scan(points, request.num_threads).largest;
  return own;
}

std::int64_t length_within_range(const double* distance, std::int64_t size) {
  if (size > 0 && distance[0] == -HUGE_VAL) throw RangeFailure();
  while (size > 0 && !is_in_range(distance[size - 1])) --size;
  return size;
}

void brute_between(const Request& asked, const Between& between,
                   const RowSource& points, WithinRows& answer) {
  check_between(asked, between, points);
  const BlockRows blocks(points, between.a, between.b);
  const Request request = request_of_blocks(asked, points, blocks);
  const MetricEntry& metric = *request.metric;
  const int exponent = common_exponent(request, blocks, nullptr, 1);
  const DistanceRule rule(metric, exponent);
  const PreparedPoints rows =
      prepare_points(blocks, recipe_of(request, exponent), request.skip, false,
                     &prepare_row<ScalarLanes>, 1);
  const bool alone = between.b.count == 0;
  const auto is_of_a = [&](std::int64_t row) { return row < between.a.count; };
  struct Entry {
    double distance;
    std::int32_t index;  // from 0
    Place place;
  };
  std::vector<std::vector<Entry>> found(
      static_cast<std::size_t>(between.num_rows()));
  WithinAnswer::Counts counts;
  for (std::int64_t i = 0; i < between.num_rows(); ++i) {
    std::vector<Entry>& list = found[static_cast<std::size_t>(i)];
    const Place a = rows.order.place_of(PointId{static_cast<std::int32_t>(i)});
    for (std::int64_t b = 0; !a.none() && b < rows.size(); ++b) {
      const std::int64_t j = rows.order.id_at(Place{b}).value;
      if (j == i || (!alone && is_of_a(i) == is_of_a(j))) continue;
      const double sum = scalar_sum(metric.accumulation, rows.row(a),
                                    rows.row(Place{b}), rows.padded);
      const double distance = rule(sum, rows.sums[a.value], rows.sums[b]);
      poll_after(static_cast<double>(rows.padded));
      if (between.limit(i) > -HUGE_VAL && distance <= between.limit(i))
        list.push_back({distance, blocks.id_of(j).value, Place{b}});
    }
    std::sort(list.begin(), list.end(), [](const Entry& x, const Entry& y) {
      return nearer(x.distance, x.index, y.distance, y.index);
    });
    if (list.size() > static_cast<std::size_t>(request.k))
      list.resize(static_cast<std::size_t>(request.k));
    std::vector<double> distances;
    distances.reserve(list.size());
    for (const Entry& e : list) distances.push_back(e.distance);
    list.resize(static_cast<std::size_t>(length_within_range(
        distances.data(), static_cast<std::int64_t>(distances.size()))));
    counts.push_back(static_cast<std::int32_t>(list.size()));
  }
  answer.allocate(counts);
  for (std::int64_t i = 0; i < between.num_rows(); ++i) {
    std::int32_t at = 0;
    for (const Entry& e : found[static_cast<std::size_t>(i)]) {
      const Place a =
          rows.order.place_of(PointId{static_cast<std::int32_t>(i)});
      const double r =
          rule.correlation(scalar_sum(Accumulation::dot, rows.row(a),
                                      rows.row(e.place), rows.padded),
                           rows.sums[a.value], rows.sums[e.place.value]);
      answer.put(i, at++, {e.distance, r, e.index + 1});
    }
  }
}

void within_between(const Request& asked, const Between& between,
                    const Within& within, const RowSource& points,
                    const FindWithin& find, WithinAnswer& answer) {
  check_between(asked, between, points);
  const BlockRows a(points, between.a), b(points, between.b);
  const bool alone = between.b.count == 0;
  Request request = request_of_blocks(asked, points, alone ? a : b);
  if (!alone) request.query_skip = a.rows_of(asked.skip);
  Within own = within;
  own.once = own.either = true;
  const auto limits_of = [&](Block block) {
    if (within.limits.size() == 1) return within.limits;
    const auto from = within.limits.begin() + block.first;
    return std::vector<double>(from, from + block.count);
  };
  own.limits = limits_of(between.a);
  if (!alone) own.point_limits = limits_of(between.b);
  find(request, own, alone ? a : b, alone ? nullptr : &a, answer);
}

}  // namespace fsknn
