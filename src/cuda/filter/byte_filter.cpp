#include <algorithm>
#include <cmath>
#include <vector>

#include "core/contract/scaling.hpp"
#include "core/rows/prepared.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/byte_choice.hpp"
#include "cuda/filter/byte_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

class ByteFilter final : public PairFilter {
 public:
  ByteFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows),
        sign_(metric.sign),
        rule_(rows.depth, rows.features,
              rounding_of_sums(padded_features(rows.features)), 1.0),
        largest_share_(zeros<double>(1)) {}
  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought& sought, const Stream& stream) override {
    const std::int64_t few = std::min(count, kByteSample);
    DeviceBuffer<double> d_largest(few);
    start_largest_entries(sample, few, rule_.rotation, d_largest.data(),
                          stream.get());
    std::vector<double> largest(static_cast<std::size_t>(few));
    download(largest.data(), d_largest, few, stream);
    stream.wait();
    rule_.step = step_of(largest);
    if (rule_.step == 0.0) return false;
    if (sought.forced) return true;
    if (few < 16) return false;
    const ByteSearch search = {sought.num_points, sought.k, rows_.depth,
                               sought.candidate_cost};
    const double gap = byte_gap(search, rule_.step);
    const double expected = expected_candidates(
        products(sample, few, few, stream), few, search, gap);
    if (!bytes_pay(expected, search)) return false;
    const std::int64_t rows = std::min(count, kDuplicateSample);
    const std::int64_t points = std::min(count, kDuplicatePoints);
    std::vector<double> similarities = products(sample, rows, points, stream);
    for (double& r : similarities) r = signed_similarity(r);
    const double overflowing =
        duplicate_candidates(similarities, rows, points, search, gap);
    return bytes_pay(
        std::max(expected, static_cast<double>(search.k) + overflowing),
        search);
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    ByteForms forms;
    forms.rule = rule_;
    forms.sign = sign_;
    forms.rows = bytes(to, 0);
    forms.columns = bytes(to, 1);
    forms.slack = slack(to);
    forms.there = there(to);
    forms.largest_share = largest_share_.data();
    start_byte_rows(from, count, slots, forms, stream);
  }
  bool suits(const Stream& stream) override {
    // The error of a magnitude is that of the worst row, so no row may be much
    // worse than the others.
    const double most = sign_ == Sign::absolute
                            ? 2 * typical_error(rule_.step, rows_.depth) /
                                  rule_.step / rule_.step
                            : static_cast<double>(rule_.largest_share());
    return largest_share(stream) <= most;
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream& stream) override {
    const bool magnitude = sign_ == Sign::absolute;
    cut.twice_error = magnitude ? 4.0 * largest_share(stream) : 0.0;
    cut.row_slack = magnitude ? nullptr : slack(rows);
    cut.column_slack = magnitude ? nullptr : slack(columns);
  }
  SimilarityUnits units(const Cut& cut, const Stream&) override {
    return {1.0 / (rule_.step * rule_.step), cut.twice_error / 2};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    ByteWork pairs;
    static_cast<PairJobs&>(pairs) = work;
    pairs.rows = bytes(work.rows, 0);
    pairs.columns = bytes(work.columns, 1);
    pairs.column_there = there(work.columns);
    start_byte_filter(sign_, pairs, stream);
  }

 private:
  /// Returns the products of a sample's first rows with its first points.
  static std::vector<double> products(const PreparedRows& sample,
                                      std::int64_t rows, std::int64_t points,
                                      const Stream& stream) {
    DeviceBuffer<double> d_products(rows * points);
    start_sample_products(sample, rows, points, d_products.data(),
                          stream.get());
    return downloaded(d_products.data(), rows * points, stream);
  }
  double signed_similarity(double r) const {
    if (sign_ == Sign::absolute) return std::fabs(r);
    return sign_ == Sign::negative ? -r : r;
  }
  double largest_share(const Stream& stream) const {
    return downloaded(largest_share_.data(), stream);
  }
  /// A block of slots holds its rows' bytes, then its columns'.
  ByteRows bytes(const FilterRows& rows, int side) const {
    ByteRows to;
    to.tiles = static_cast<std::int8_t*>(rows.rows) +
               side * rows_.depth * kFilterBlock;
    to.depth = rows_.depth;
    to.stride = 2 * rows_.depth * kFilterBlock;
    return to;
  }
  static float* slack(const FilterRows& rows) { return rows.values; }
  static float* there(const FilterRows& rows) {
    return rows.values + rows.num_slots;
  }

  const Sign sign_;
  ByteRule rule_;
  DeviceBuffer<double> largest_share_;
};

}  // namespace

std::unique_ptr<PairFilter> make_byte_filter(const MetricEntry& metric,
                                             const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new ByteFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
