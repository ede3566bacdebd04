#include <algorithm>
#include <vector>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/elementwise_rows.cuh"
#include "cuda/filter/whole_bound.hpp"
#include "cuda/filter/whole_choice.hpp"
#include "cuda/filter/whole_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The sample's rows, and the columns with which each is compared.
constexpr std::int64_t kSampledRows = 16, kMostColumns = 8192;

/// The rule for writing rows.
struct WholeForm {
  ElementwiseRule rule;
  int most = 0;
  int bytes = 1;           ///< of a number
  std::int64_t depth = 0;  ///< numbers of a row
};

// One warp handles a row. In: prepared rows [count x padded], row-major, and
// their sums; centre [padded]; slots [count]. Out: their slots. Grid: x over
// rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    round_to_whole(const WholeForm form, const double* centre,
                   const PreparedRows from, std::int64_t count,
                   const std::int32_t* slots, const ElementwiseRows to) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  const int numbers = 4 / form.bytes;  // of a word
  const std::int64_t words = form.depth / numbers;
  RowTerms terms;
  unsigned total = 0;
  for (std::int64_t w = lane; w < words; w += kWarp) {
    std::uint32_t word = 0;
    for (int at = 0; at < numbers; ++at) {
      const std::int64_t f = w * numbers + at;
      int q = 0;  // for padding
      if (f < from.padded)
        q = whole_entry(form.rule, form.most, from.rows[row * from.padded + f],
                        centre[f], terms);
      const std::uint32_t stored =
          static_cast<std::uint32_t>(q + form.most + 1);
      total += stored;
      word |= stored << (8 * form.bytes * at);
    }
    to.rows[slot * words + w] = word;
  }
  terms = terms_of_warp(form.rule, terms);
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    total += __shfl_xor_sync(0xffffffffu, total, gap);
  if (lane > 0) return;
  const RowBounds bounds = row_bounds(form.rule, terms, from.sums[row]);
  to.room[slot] = bounds.room;
  to.slack[slot] = bounds.slack;
  to.sum[slot] = bounds.sum;
  if (form.bytes == 2) to.total[slot] = total;
}

// One warp handles a column: its bounds, and its distances from the first rows,
// as the filter compares them. In: as round_to_whole(). Out: distance [num_rows
// x count], room and sum [count]. Grid: x over columns. Block: kThreads.
// Shared: none.
__global__ void __launch_bounds__(kThreads)
    examine_sample(const WholeForm form, const double* centre,
                   const PreparedRows from, std::int64_t num_rows,
                   std::int64_t count, double* distance, float* room,
                   float* sum) {
  const std::int64_t column = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (column >= count) return;
  const double* const own = from.rows + column * from.padded;
  RowTerms terms;
  for (std::int64_t f = lane; f < from.padded; f += kWarp)
    whole_entry(form.rule, form.most, own[f], centre[f], terms);
  terms = terms_of_warp(form.rule, terms);
  if (lane == 0) {
    const RowBounds bounds = row_bounds(form.rule, terms, from.sums[column]);
    room[column] = bounds.room;
    sum[column] = bounds.sum;
  }
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const double* const other = from.rows + row * from.padded;
    // Accumulates like a row's terms: sums, or the largest.
    RowTerms terms;
    for (std::int64_t f = lane; f < from.padded; f += kWarp)
      add_terms(form.rule, terms, {fabs(own[f] - other[f]), 0.0, 0.0});
    terms = terms_of_warp(form.rule, terms);
    const double over = is_proportion(form.rule.kind)
                            ? from.sums[column] + from.sums[row]
                            : 1.0 / form.rule.inverse_unit;
    if (lane == 0) distance[row * count + column] = terms.size / over;
  }
}

class WholeFilter final : public PairFilter {
 public:
  WholeFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows),
        metric_(metric),
        padded_(padded_features(rows.features)),
        centre_(padded_) {
    form_.depth = rows.depth;
    form_.bytes = static_cast<int>(entry_of(rows.form).bytes);
  }

  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought& sought, const Stream& stream) override {
    const SampledRows some(sample, count, stream);
    const FilterKind kind = metric_.filter;
    const ElementwiseScale scale =
        whole_scale(some.rows.data(), some.count, padded_, rows_.features,
                    rows_.form, kind);
    if (scale.inverse_unit == 0.0) return false;
    form_.rule = whole_rule(metric_, padded_, scale.inverse_unit);
    form_.most = most_whole(rows_.form, kind);
    upload(centre_, scale.centre.data(), padded_, stream);
    stream.wait();
    if (sought.forced) return true;
    return whole_pays(examine(sample, count, sought, stream), rows_.form, kind,
                      search_of(sought));
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    round_to_whole<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        form_, centre_.data(), from, count, slots, elementwise_rows(to));
    CUDA_CHECK(cudaGetLastError());
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream&) override {
    cut.twice_error = 0.0;
    cut.row_slack = elementwise_rows(rows).slack;
    cut.column_slack = elementwise_rows(columns).slack;
    const bool proportion = is_proportion(form_.rule.kind);
    cut.row_sum = proportion ? elementwise_rows(rows).sum : nullptr;
    cut.column_sum = proportion ? elementwise_rows(columns).sum : nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {is_proportion(form_.rule.kind) ? 1.0 : form_.rule.inverse_unit,
            0.0};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    const ElementwiseWork pairs =
        elementwise_work(work, rows_.depth * form_.bytes / 4);
    if (form_.bytes == 1)
      start_byte_differences(form_.rule.kind, pairs, stream);
    else
      start_word_differences(form_.rule.kind, pairs, stream);
  }

 private:
  WholeSample examine(const PreparedRows& points, std::int64_t count,
                      const Sought& sought, const Stream& stream) const {
    WholeSample sample;
    // Two of each row's nearest, if there are that many.
    const std::int64_t enough =
        sought.k == 0 ? kMostColumns
                      : (2 * sought.num_points + sought.k - 1) / sought.k;
    sample.columns = std::min(
        count, std::max<std::int64_t>(256, std::min(kMostColumns, enough)));
    sample.rows = std::min(sample.columns, kSampledRows);
    if (sample.columns == 0) return sample;
    DeviceBuffer<double> distance(sample.rows * sample.columns);
    DeviceBuffer<float> room(sample.columns), sum(sample.columns);
    examine_sample<<<blocks_of_warps(sample.columns), kThreads, 0,
                     stream.get()>>>(form_, centre_.data(), points, sample.rows,
                                     sample.columns, distance.data(),
                                     room.data(), sum.data());
    CUDA_CHECK(cudaGetLastError());
    sample.distance.resize(static_cast<std::size_t>(distance.size()));
    sample.room.resize(static_cast<std::size_t>(room.size()));
    sample.sum.resize(static_cast<std::size_t>(sum.size()));
    download(sample.distance.data(), distance, distance.size(), stream);
    download(sample.room.data(), room, room.size(), stream);
    download(sample.sum.data(), sum, sum.size(), stream);
    stream.wait();
    return sample;
  }
  WholeSearch search_of(const Sought& sought) const {
    WholeSearch search;
    search.num_points = sought.num_points;
    search.num_features = rows_.features;
    search.k = sought.k;
    search.capacity = sought.capacity;
    search.reranks = sought.reranks;
    search.limit =
        !is_proportion(form_.rule.kind) ? sought.limit * form_.rule.inverse_unit
        : sought.limit < 1.0
            ? 1.0 - metric_.least_overlap(std::max(sought.limit, 0.0))
            : HUGE_VAL;
    return search;
  }

  const MetricEntry& metric_;
  const std::int64_t padded_;
  DeviceBuffer<double> centre_;  ///< [padded_]
  WholeForm form_;
};

}  // namespace

std::unique_ptr<PairFilter> make_whole_filter(const MetricEntry& metric,
                                              const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new WholeFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
