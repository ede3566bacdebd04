#include "cpu/search/within_search.hpp"

#include <algorithm>

#include "cpu/filter/thresholds.hpp"

namespace fsknn {
namespace cpu {

class WithinSearch::Sink : public SinkDefaults {
 public:
  static constexpr std::size_t kHits = 2048;

  Sink(const WithinSearch& search, WithinCollector& collector)
      : s_(search), taker_(collector) {}

  bool enter(const Chunk& at, std::int32_t* row_threshold,
             std::int32_t* column_threshold) {
    at_ = at;
    fill(at.row0, at.num_rows, row_threshold);
    // Only queries have limits: the columns' thresholds let no pair pass.
    fill(at.column0, s_.symmetric_ ? at.num_columns : 0, column_threshold);
    return true;
  }

  void take(const Pair& hit, double sum) {
    const Place row = s_.rows_.place(at_.row0 + hit.row);
    const Place column = s_.columns_.place(at_.column0 + hit.column);
    taker_.take(AnswerRow{s_.rows_.id(row).value}, s_.columns_.id(column),
                s_.rule_.value(sum, s_.rows_.points->sums[row.value],
                               s_.columns_.points->sums[column.value]));
  }

 private:
  void fill(std::int64_t place0, std::int64_t count, std::int32_t* to) {
    std::fill_n(to, s_.plan_.chunk_size, s_.keep_none_);
    if (count > 0) std::copy_n(s_.threshold_.data() + place0, count, to);
  }

  const WithinSearch& s_;
  WithinCollector::Taker taker_;
  Chunk at_ = {};
};

WithinSearch::WithinSearch(const Request& request, const Within& within,
                           const Plan& plan, const Kernels& kernels,
                           const DistanceRule& rule, const FilterScale& scale,
                           const PointBlock& rows, const PointBlock& columns,
                           Progress* progress)
    : request_(request),
      metric_(*request.metric),
      plan_(plan),
      kernels_(kernels),
      rule_(rule),
      scale_(scale),
      rows_(rows),
      columns_(columns),
      symmetric_(rows.points == columns.points),
      progress_(progress),
      threshold_(rows.size()) {
  const Thresholds thresholds(scale_, metric_, rule_);
  keep_none_ = thresholds.keep_none();
  const double reach = within.reach_of_points();
  for (std::int64_t p = 0; p < rows.size(); ++p)
    threshold_[p] = thresholds.keep_up_to(
        std::max(reach, within.limit(rows_.id(rows_.place(p)).value)));
  if (rows_.spans == nullptr || scale_.form->reach == nullptr) return;
  ChunkSpans& spans = *rows_.spans;
  for (std::int64_t c = 0; c < spans.size(); ++c)
    spans.set_limit(c, limit_of(spans.tiles(), scale_,
                                threshold_.data() + c * plan_.chunk_size,
                                spans.num_points(c)));
  if (symmetric_ || columns_.spans == nullptr) return;
  for (std::int64_t c = 0; c < columns_.spans->size(); ++c)
    columns_.spans->set_limit(c, -HUGE_VALF);
}

void WithinSearch::run(WithinCollector& collector, double from, double to) {
  const ChunkGrid grid = {plan_.num_splits, plan_.chunks_per_split, symmetric_};
  counts_.add(run_pass(grid, request_.num_threads, {progress_, from, to}, [&] {
    return ChunkPass<PreparedPairs, Sink>(
        plan_.chunk_size, symmetric_,
        [&] {
          return PreparedPairs(kernels_, metric_.accumulation, scale_, rows_,
                               columns_, plan_.chunk_size);
        },
        [&] { return Sink(*this, collector); });
  }));
}

}  // namespace cpu
}  // namespace fsknn
