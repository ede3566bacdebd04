#include "core/contract/scaling.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/filter/half_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

class HalfFilter : public PairFilter {
 public:
  HalfFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows),
        sign_(metric.sign),
        padded_(padded_features(rows.features)) {
    feature_range_sums_ = DeviceBuffer<float4>(
        bytes_feature_range_sums(current_device(), rows.depth) /
        static_cast<std::int64_t>(sizeof(float4)));
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    HalfWork half = half_work(work, rows_);
    half.column_there = there(work.columns);
    if (has_factors()) {
      half.row_numbers[0] = there(work.rows);
      half.column_numbers[0] = there(work.columns);
    }
    half.feature_range_sums = feature_range_sums_.data();
    start_half_filter(sign_, half, stream);
  }

 protected:
  /// Whether the array there() holds a factor for each row, not only 1.
  virtual bool has_factors() const { return false; }
  HalfRows halves(const FilterRows& rows, int side) const {
    return tiled_halves(rows, rows_, side);
  }
  static float* slack(const FilterRows& rows) { return rows.values; }
  static float* there(const FilterRows& rows) {
    return rows.values + rows.num_slots;
  }

  const Sign sign_;
  const std::int64_t padded_;

 private:
  DeviceBuffer<float4> feature_range_sums_;
};

/// Rows of length 1: one error holds for all pairs.
class UnitFilter final : public HalfFilter {
 public:
  UnitFilter(const MetricEntry& metric, const RowsInForm& rows)
      : HalfFilter(metric, rows), errors_(zeros<double>(2)) {}
  /// This filter does not suit rows that are nearly the same. With other signs
  /// such rows remain as they are.
  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo,
             const Sought&, const Stream& stream) override {
    if (!rows_.may_centre || sign_ != Sign::signed_value) return true;
    DeviceBuffer<double> form(padded_ + 1);
    start_raw_form(sample, count,
                   {form.data(), form.data() + padded_, RawSum::near_rows},
                   stream.get());
    return !centring_pays(downloaded(form.data() + padded_, stream));
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    start_unit_rows(from, count, slots, halves(to, 0), there(to),
                    {errors_.data(), errors_.data() + 1}, stream);
  }
  void set_errors(Cut& cut, const FilterRows&, const FilterRows&,
                  const Stream& stream) override {
    const std::vector<double> errors = downloaded(errors_.data(), 2, stream);
    cut.twice_error = 2.0 * kSimilarityScale *
                      unit_error(errors[0], errors[1], rows_.depth, padded_);
    cut.row_slack = cut.column_slack = nullptr;
  }
  SimilarityUnits units(const Cut& cut, const Stream&) override {
    return {kSimilarityScale, cut.twice_error / 2};
  }

 private:
  DeviceBuffer<double> errors_;
};

RawSum raw_sum_of(const MetricEntry& metric) {
  if (metric.is_unit_dot()) return RawSum::near_rows;
  return metric.accumulation == Accumulation::dot ? RawSum::product
                                                  : RawSum::squared_distance;
}

/// |a - b|^2, also for rows of length 1 that are nearly the same, or a b for
/// rows of any length: each row has its own error.
class RawFilter final : public HalfFilter {
 public:
  RawFilter(const MetricEntry& metric, const RowsInForm& rows)
      : HalfFilter(metric, rows),
        sum_(raw_sum_of(metric)),
        form_(padded_ + 1) {}
  bool learn(const PreparedRows& sample, std::int64_t count, PowerOfTwo undo,
             const Sought&, const Stream& stream) override {
    undo_ = undo;
    start_raw_form(sample, count, form(), stream.get());
    return true;
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    RawRows raw;
    raw.rows = halves(to, 0);
    raw.columns = halves(to, 1);
    raw.slack = slack(to);
    raw.factor = there(to);
    start_raw_rows(from, count, slots, form(), undo_, raw, stream);
  }
  void set_errors(Cut& cut, const FilterRows& rows, const FilterRows& columns,
                  const Stream&) override {
    cut.twice_error = 0.0;
    cut.row_slack = slack(rows);
    cut.column_slack = slack(columns);
    cut.row_factor = has_factors() ? there(rows) : nullptr;
    cut.column_factor = has_factors() ? there(columns) : nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream& stream) override {
    SimilarityUnits units;
    units.near_rows = sum_ == RawSum::near_rows;
    units.scale = downloaded<double>(form().scale, stream);
    // Distances are then hardly larger than the rounding of the contract's
    // sums.
    constexpr double nearest = 0x1p30;
    units.wide = units.near_rows && units.scale > nearest;
    return units;
  }
  /// Rows far from those of the sample have no lower bound.
  bool may_learn_again() const override { return !has_factors(); }

 private:
  bool has_factors() const override { return sum_ == RawSum::product; }
  RawForm form() { return {form_.data(), form_.data() + padded_, sum_}; }
  const RawSum sum_;
  DeviceBuffer<double> form_;
  PowerOfTwo undo_ = {1.0, 1.0};
};

}  // namespace

std::unique_ptr<PairFilter> make_half_filter(const MetricEntry& metric,
                                             const RowsInForm& rows) {
  // check_metric() lets no other metrics declare products.
  if (metric.is_unit_dot() && !rows.centred)
    return std::unique_ptr<PairFilter>(new UnitFilter(metric, rows));
  return std::unique_ptr<PairFilter>(new RawFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
