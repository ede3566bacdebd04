#include "cpu/missing/masked_search.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/pieces.hpp"
#include "cpu/missing/masked_pass.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// Translates places to the points' numbers.
class Taker {
 public:
  Taker(const MaskedWork& work, WithinCollector& collector)
      : rows_(work.rows().order),
        columns_(work.columns.order),
        taker_(collector) {}
  void take(Place row, Place column, double value) {
    taker_.take(AnswerRow{rows_.id_at(row).value}, columns_.id_at(column),
                value);
  }
  void merge() {}

 private:
  const PointOrder& rows_;
  const PointOrder& columns_;
  WithinCollector::Taker taker_;
};

/// Collects pairs for one thread of the sample's pass.
class SampleTaker {
 public:
  SampleTaker(const MaskedWork& work, const WithinSample& sample,
              DistanceTally& all)
      : work_(work), sample_(sample), all_(all) {}
  void merge() { all_.add_all(own_); }
  void take(Place row, Place column, double value) {
    const double distance = work_.rule.distance(value);
    count(work_.rows(), row, distance);
    if (work_.symmetric) count(work_.columns, column, distance);
  }

 private:
  void count(const MaskedPoints& points, Place place, double distance) {
    if (distance <= sample_.limit(points.order.id_at(place).value))
      own_.add(distance);
  }

  const MaskedWork& work_;
  const WithinSample& sample_;
  DistanceTally own_;
  DistanceTally& all_;
};

/// Makes a pass over all pairs, with the rows' limits as thresholds. Where a
/// pair may be within the limit of its column alone, `reach` is the largest.
MaskedPass pass_within(const MaskedWork& work, const Plan& plan,
                       const std::function<double(std::int64_t)>& limit,
                       double reach, Progress* progress) {
  MaskedPass pass(work, plan, true, progress);
  for (std::int64_t p = 0; p < work.rows().size(); ++p)
    pass.set_threshold(
        Place{p},
        std::max(reach, limit(work.rows().order.id_at(Place{p}).value)));
  return pass;
}

/// As check_sample(), by the filter and on all threads.
void check_masked_sample(const Request& asked, const Within& within,
                         const RowSource& points, const RowSource* queries,
                         Progress* progress) {
  const WithinSample sample(asked, within, points, queries);
  if (!sample.needed()) return;
  Request request = asked;
  request.skip.clear();
  request.query_skip.clear();
  const MaskedWork work(request, sample.points(), sample.queries(), progress);
  if (work.empty()) return;
  const Plan plan = work.plan();
  DistanceTally inside;
  pass_within(
      work, plan, [&](std::int64_t row) { return sample.limit(row); },
      within.reach_of_points(), progress)
      .run({progress, 0.0, 0.0},
           [&] { return SampleTaker(work, sample, inside); });
  sample.check(inside);
}

}  // namespace

void find_masked_within(const Request& asked, const Within& within,
                        const RowSource& points, const RowSource* queries,
                        WithinAnswer& answer, Progress* progress,
                        Stats* stats) {
  const Clock::time_point start = Clock::now();
  check_masked_sample(asked, within, points, queries, progress);
  const MaskedWork work(asked, points, queries, progress);
  WithinCollector collector(
      work.request, within,
      (queries != nullptr ? *queries : points).num_points(),
      queries == nullptr);
  if (work.empty()) {
    collector.allocate(answer);
    return;
  }
  const Plan plan = work.plan();
  MaskedPass pass = pass_within(
      work, plan, [&](std::int64_t row) { return within.limit(row); },
      within.reach_of_points(), progress);
  const auto run = [&](double from, double to) {
    pass.run({progress, from, to}, [&] { return Taker(work, collector); });
  };
  const double seconds_prepare = seconds_since(start);
  run(0.0, 0.5);
  if (!collector.allocate(answer)) run(0.5, 1.0);
  const double seconds_search = seconds_since(start) - seconds_prepare;
  collector.finish();
  if (stats == nullptr) return;
  stats->pairs_filtered = pass.counts().filtered;
  stats->filter = pass.numbers();
  stats->pairs_exact = pass.counts().exact;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
