#include "core/search/within.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/split_mix.hpp"
#include "core/rows/subset.hpp"

namespace fsknn {
namespace {

// A thread adds this many pairs at a time to the common list.
constexpr std::size_t kHanded = 4096;
// Points of the sample, which have half a million pairs.
constexpr std::int64_t kSampled = 1024;

// Bins of a power of two, by the leading bits of the significand.
constexpr int kBinBits = 7;
constexpr std::size_t kBins = std::size_t{1} << kBinBits;
// Exponents from that of the smallest subnormal number to that of the largest
// double, and infinity; 0 has its own entry, the first.
constexpr int kLeastExponent = -1074;
constexpr int kPowers = 1024 - kLeastExponent + 2;

/// |distance|: its power of two, and the bin in it.
struct TallyPlace {
  int power;
  std::size_t bin;
};

TallyPlace place_of(double magnitude) {
  if (magnitude == 0.0) return {0, 0};
  if (!is_in_range(magnitude)) return {kPowers - 1, 0};
  int exponent;
  const double significand = 2.0 * std::frexp(magnitude, &exponent);
  return {exponent - kLeastExponent,
          static_cast<std::size_t>((significand - 1.0) * kBins)};
}

/// The least magnitude of a bin; for bin kBins that of the next one.
double magnitude_of(int power, std::size_t bin) {
  if (power == 0) return 0.0;
  const double significand = 1.0 + static_cast<double>(bin) / kBins;
  return std::ldexp(significand, power + kLeastExponent - 1);
}

/// Pairs over common samples have their own rule.
int exponent_of_pairs(const Request& request, const RowSource& points,
                      const RowSource* queries) {
  return request.na_pairwise
             ? 0
             : common_exponent(request, points, queries, request.num_threads);
}

/// Rows of two sets of points, and the values of their pairs.
class ExactPairs {
 public:
  ExactPairs(const Request& request, const RowSource& points,
             const std::vector<std::int64_t>& skip, const RowSource* queries,
             const std::vector<std::int64_t>& query_skip, int exponent)
      : request_(request),
        graph_(queries == nullptr),
        rule_(metric(), exponent) {
    if (request.na_pairwise)
      masked_ = std::make_unique<MaskedRule>(request, points, queries);
    const RowRecipe recipe = recipe_of(request, exponent);
    const auto fill = [&](const RowSource& source,
                          const std::vector<std::int64_t>& left_out,
                          PreparedPoints& plain, MaskedPoints& masked) {
      if (request.na_pairwise)
        masked = prepare_masked(source, *masked_, left_out, false, 1);
      else
        plain = prepare_points(source, recipe, left_out, false,
                               &prepare_row<ScalarLanes>, 1);
    };
    fill(points, skip, columns_, masked_columns_);
    if (!graph_) fill(*queries, query_skip, rows_, masked_rows_);
  }
  const PointOrder& columns() const {
    return request_.na_pairwise ? masked_columns_.order : columns_.order;
  }
  const PointOrder& rows() const {
    if (graph_) return columns();
    return request_.na_pairwise ? masked_rows_.order : rows_.order;
  }
  /// The value for a Taker; NaN for an invalid pair.
  double value(std::int64_t a, std::int64_t b) const {
    if (request_.na_pairwise) {
      const MaskedPoints& rows = graph_ ? masked_columns_ : masked_rows_;
      return masked_->value(
          masked_pair<ScalarLanes>(masked_->terms(), rows.row(Place{a}),
                                   masked_columns_.row(Place{b}), rows.padded));
    }
    const PreparedPoints& rows = graph_ ? columns_ : rows_;
    const double sum = scalar_sum(metric().accumulation, rows.row(Place{a}),
                                  columns_.row(Place{b}), columns_.padded);
    return rule_.value(sum, rows.sums[a], columns_.sums[b]);
  }
  /// The distance for a value; NaN, which is within no limit, for an invalid
  /// pair.
  double distance(double value) const {
    return metric().is_unit_dot() ? metric().finish(value, 0, 0) : value;
  }

 private:
  const MetricEntry& metric() const { return *request_.metric; }
  const Request& request_;
  const bool graph_;
  const DistanceRule rule_;
  PreparedPoints columns_, rows_;
  std::unique_ptr<const MaskedRule> masked_;
  MaskedPoints masked_columns_, masked_rows_;
};

/// A sample of at most `most` of n numbers, without `skip`, ascending.
std::vector<std::int32_t> sample_of(std::int64_t n,
                                    const std::vector<std::int64_t>& skip,
                                    std::int64_t most) {
  const PointOrder order = order_points(n, skip, false);
  std::vector<std::int32_t> numbers = order.id;
  if (static_cast<std::int64_t>(numbers.size()) <= most) return numbers;
  SplitMix random(20130002);
  for (std::size_t p = 0; p < static_cast<std::size_t>(most); ++p)
    std::swap(numbers[p], numbers[p + random.below(static_cast<std::uint32_t>(
                                          numbers.size() - p))]);
  numbers.resize(static_cast<std::size_t>(most));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

DistanceTally::DistanceTally() : count_(std::size_t{2} * kPowers) {}

void DistanceTally::add(double distance) {
  const TallyPlace place = place_of(std::fabs(distance));
  const bool below = distance < 0.0;
  const int power = below ? kPowers - 1 - place.power : kPowers + place.power;
  std::vector<std::int64_t>& bins = count_[static_cast<std::size_t>(power)];
  if (bins.empty()) bins.resize(kBins);
  ++bins[below ? kBins - 1 - place.bin : place.bin];
}

void DistanceTally::add_all(const DistanceTally& other) {
  for (std::size_t p = 0; p < count_.size(); ++p) {
    if (other.count_[p].empty()) continue;
    if (count_[p].empty()) count_[p].resize(kBins);
    for (std::size_t b = 0; b < kBins; ++b) count_[p][b] += other.count_[p][b];
  }
}

double DistanceTally::total() const {
  double sum = 0.0;
  for (const std::vector<std::int64_t>& bins : count_)
    sum += static_cast<double>(
        std::accumulate(bins.begin(), bins.end(), std::int64_t{0}));
  return sum;
}

double DistanceTally::reach(double most) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double sum = 0.0;
  for (int p = 0; p < 2 * kPowers; ++p) {
    const std::vector<std::int64_t>& bins = count_[static_cast<std::size_t>(p)];
    for (std::size_t b = 0; b < bins.size(); ++b) {
      sum += static_cast<double>(bins[b]);
      if (sum <= most) continue;
      // Below every distance of this bin, even if its end is subnormal and
      // therefore rounded. Bins of negative distances are in descending order
      // of magnitude.
      const bool below = p < kPowers;
      const double end = below ? -magnitude_of(kPowers - 1 - p, kBins - b)
                               : magnitude_of(p - kPowers, b);
      return std::nextafter(end, -infinity);
    }
  }
  return infinity;
}

WithinCollector::WithinCollector(const Request& request, const Within& within,
                                 std::int64_t num_rows, bool graph)
    : request_(request),
      within_(within),
      metric_(*request.metric),
      graph_(graph),
      unit_dot_(metric_.is_unit_dot()),
      num_rows_(num_rows),
      count_(
          new std::atomic<std::int32_t>[static_cast<std::size_t>(num_rows)]) {
  for (std::int64_t i = 0; i < num_rows; ++i)
    count_[static_cast<std::size_t>(i)].store(0, std::memory_order_relaxed);
}

WithinCollector::Taker::Taker(Taker&& other) noexcept
    : all_(other.all_),
      tally_(std::move(other.tally_)),
      pairs_(std::move(other.pairs_)) {
  other.all_ = nullptr;
}

WithinCollector::Taker::~Taker() {
  if (all_ == nullptr || all_->answer_ != nullptr) return;
  hand_over();
  const std::lock_guard<std::mutex> held(all_->lock_);
  all_->tally_.add_all(tally_);
}

void WithinCollector::Taker::hand_over() {
  if (pairs_.empty()) return;
  const std::lock_guard<std::mutex> held(all_->lock_);
  if (all_->keeps_) {
    all_->num_kept_ += static_cast<std::int64_t>(pairs_.size());
    if (all_->num_kept_ > all_->within_.most_kept) {
      all_->keeps_ = false;
      all_->kept_ = {};
    } else {
      all_->kept_.push_back(std::move(pairs_));
    }
  }
  pairs_.clear();
}

void WithinCollector::Taker::take(AnswerRow answer_row, PointId point,
                                  double value) {
  const std::int32_t row = answer_row.value, column = point.value;
  if (all_->is_self(row, column)) return;
  all_->offer(row, column, value, tally_);
  if (all_->answer_ != nullptr || !all_->keeps_) return;
  const double distance = all_->distance_of(value);
  if (!all_->is_within(row, column, distance) &&
      !(all_->graph_ && all_->is_within(column, row, distance)))
    return;
  pairs_.push_back({row, column, value});
  if (pairs_.size() >= kHanded) hand_over();
}

bool WithinCollector::is_within(std::int32_t row, std::int32_t column,
                                double distance) const {
  return distance <= within_.limit(row, column);
}

void WithinCollector::offer(std::int32_t row, std::int32_t column, double value,
                            DistanceTally& tally) {
  const double distance = distance_of(value);
  const auto one = [&](std::int32_t a, std::int32_t b) {
    if (!is_within(a, b, distance)) return;
    if (!is_in_range(distance)) throw RangeFailure();
    if (answer_ == nullptr)
      count(a, distance, tally);
    else
      fill(a, b, distance, value);
  };
  if (graph_ && within_.once)
    return one(std::min(row, column), std::max(row, column));
  one(row, column);
  if (graph_) one(column, row);
}

void WithinCollector::count(std::int32_t row, double distance,
                            DistanceTally& tally) {
  count_[static_cast<std::size_t>(row)].fetch_add(1, std::memory_order_relaxed);
  tally.add(distance);
}

void WithinCollector::fill(std::int32_t row, std::int32_t index,
                           double distance, double value) {
  const std::int32_t at = count_[static_cast<std::size_t>(row)].fetch_add(
      1, std::memory_order_relaxed);
  answer_->put(row, at,
               {distance, unit_dot_ ? clamp_to_one(value) : 0.0, index + 1});
}

bool WithinCollector::allocate(WithinAnswer& answer) {
  counts_.resize(static_cast<std::size_t>(num_rows_));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] = count_[i].exchange(0, std::memory_order_relaxed);
    entries_ += counts_[i];
  }
  if (entries_ > within_.most)
    throw TooManyPairs(entries_, false, within_.most,
                       tally_.reach(within_.most));
  answer.allocate(counts_);
  answer_ = &answer;
  if (!keeps_) return false;
  run_pieces(
      static_cast<std::int64_t>(kept_.size()), request_.num_threads, {}, [&] {
        return [&](std::int64_t piece) {
          for (const Taker::Pair& pair : kept_[static_cast<std::size_t>(piece)])
            offer(pair.row, pair.column, pair.value, tally_);
        };
      });
  kept_ = {};
  return true;
}

void WithinCollector::finish() {
  answer_->finish(counts_, request_.num_threads);
}

WithinSample::WithinSample(const Request& request, const Within& within,
                           const RowSource& points, const RowSource* queries)
    : within_(within) {
  const double n = static_cast<double>(points.num_points()) -
                   static_cast<double>(request.skip.size());
  const double rows = queries == nullptr
                          ? n
                          : static_cast<double>(queries->num_points()) -
                                static_cast<double>(request.query_skip.size());
  all_ = queries == nullptr && within.once ? n * (n - 1) / 2 : rows * n;
  // A block pair is part of a search that samples all pairs itself.
  if (within.either) return;
  // check() throws only if it expects more than twice as many entries as fit.
  if (!(all_ > 2.0 * within.most)) return;
  points_ = std::make_unique<RowSubset>(
      points, sample_of(points.num_points(), request.skip, kSampled));
  if (queries != nullptr)
    queries_ = std::make_unique<RowSubset>(
        *queries,
        sample_of(queries->num_points(), request.query_skip, kSampled / 2));
}

double WithinSample::limit(std::int64_t row) const {
  const RowSubset& rows = queries_ != nullptr ? *queries_ : *points_;
  return within_.limit(rows.numbers()[static_cast<std::size_t>(row)]);
}

void WithinSample::check(const DistanceTally& inside) const {
  const double n = static_cast<double>(points_->num_points());
  const double seen = queries_ == nullptr
                          ? n * (n - 1)
                          : n * static_cast<double>(queries_->num_points());
  if (seen == 0.0) return;
  const double expected = inside.total() / seen * all_;
  if (!(expected > 2.0 * within_.most)) return;
  // Four fifths of the room, because a sample has an error.
  throw TooManyPairs(expected, true, within_.most,
                     inside.reach(0.8 * within_.most / all_ * seen));
}

void check_sample(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries) {
  const WithinSample sample(asked, within, points, queries);
  if (!sample.needed()) return;
  const Request request = suited(asked, points, queries);
  const int exponent = exponent_of_pairs(request, points, queries);
  const ExactPairs pairs(request, sample.points(), {}, sample.queries(), {},
                         exponent);
  DistanceTally inside;
  for (std::int64_t a = 0; a < pairs.rows().num_active(); ++a) {
    for (std::int64_t b = 0; b < pairs.columns().num_active(); ++b) {
      if (queries == nullptr && a == b) continue;
      const double distance = pairs.distance(pairs.value(a, b));
      if (distance <= sample.limit(a)) inside.add(distance);
      poll_after(static_cast<double>(points.num_features()));
    }
  }
  sample.check(inside);
}

void brute_within(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries,
                  WithinAnswer& answer) {
  const Request request = suited(asked, points, queries);
  const int exponent = exponent_of_pairs(request, points, queries);
  const ExactPairs pairs(request, points, request.skip, queries,
                         request.query_skip, exponent);
  const bool graph = queries == nullptr;
  struct Entry {
    double distance;
    std::int32_t index;
    double value;
  };
  const std::size_t num_rows = pairs.rows().place.size();
  std::vector<std::vector<Entry>> found(num_rows);
  std::vector<std::int32_t> counts(num_rows, 0);
  for (std::size_t i = 0; i < num_rows; ++i) {
    const std::int32_t a = pairs.rows().place[i];
    if (a < 0) continue;
    for (std::int32_t b = 0; b < pairs.columns().num_active(); ++b) {
      const std::int32_t j = pairs.columns().id[static_cast<std::size_t>(b)];
      if (graph ? a == b || (within.once && b < a)
                : !request.query_self.empty() && request.query_self[i] == j)
        continue;
      const double value = pairs.value(a, b);
      const double distance = pairs.distance(value);
      if (!(distance <= within.limit(static_cast<std::int64_t>(i), j)))
        continue;
      if (!is_in_range(distance)) throw RangeFailure();
      found[i].push_back({distance, j, value});
    }
    std::stable_sort(
        found[i].begin(), found[i].end(),
        [](const Entry& x, const Entry& y) { return x.distance < y.distance; });
    counts[i] = static_cast<std::int32_t>(found[i].size());
  }
  answer.allocate(counts);
  const bool unit_dot = request.metric->is_unit_dot();
  for (std::size_t i = 0; i < num_rows; ++i) {
    std::int32_t at = 0;
    for (const Entry& e : found[i])
      answer.put(
          static_cast<std::int64_t>(i), at++,
          {e.distance, unit_dot ? clamp_to_one(e.value) : 0.0, e.index + 1});
  }
  answer.finish(counts, 1);
}

}  // namespace fsknn
