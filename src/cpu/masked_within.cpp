#include "cpu/masked_within.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "core/pieces.hpp"
#include "cpu/masked_pass.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// From places to the points' numbers.
class Taker final : public MaskedPass::Taker {
 public:
  Taker(const MaskedWork& work, WithinCollector& collector)
      : rows_(work.rows().order.id),
        columns_(work.columns.order.id),
        taker_(collector) {}
  void take(std::int64_t row, std::int64_t column, double r) override {
    taker_.take(rows_[static_cast<std::size_t>(row)],
                columns_[static_cast<std::size_t>(column)], r);
  }

 private:
  const std::vector<std::int32_t>& rows_;
  const std::vector<std::int32_t>& columns_;
  WithinCollector::Taker taker_;
};

}  // namespace

void find_masked_within(const Request& asked, const Within& within,
                        const RowSource& points, const RowSource* queries,
                        WithinAnswer& answer, Progress* progress,
                        Stats* stats) {
  const Clock::time_point start = Clock::now();
  check_sample(asked, within, points, queries);
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
  MaskedPass pass(work, plan, true, progress);
  for (std::int64_t p = 0; p < work.rows().size(); ++p)
    pass.set_threshold(p, within.limit(work.rows().order.id[
                              static_cast<std::size_t>(p)]));
  const auto run = [&](double from, double to) {
    pass.run({progress, from, to},
             [&] { return std::make_unique<Taker>(work, collector); });
  };
  const double seconds_prepare = seconds_since(start);
  run(0.0, 0.5);
  if (!collector.allocate(answer)) run(0.5, 1.0);
  const double seconds_search = seconds_since(start) - seconds_prepare;
  collector.finish();
  if (stats == nullptr) return;
  stats->pairs_filtered = pass.pairs_filtered();
  stats->filtered = true;
  stats->pairs_exact = pass.pairs_exact();
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
