#include "core/contract/metrics.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace fsknn {
namespace {

template <class M>
auto overlap_of(int) -> decltype(&M::least_overlap) {
  return &M::least_overlap;
}
template <class M>
double (*overlap_of(long))(double) {
  return nullptr;
}

using Finishing = double (*)(double, double, double, const TableTerms&);

template <class M>
Finishing similarity_of(decltype(&M::similarity)) {
  return &similarity_by<M>;
}
template <class M>
Finishing similarity_of(...) {
  return nullptr;
}

template <class M>
MetricEntry entry() {
  MetricEntry made = {
      M::name,          M::sign,       M::row_form,
      M::Sum::which,    M::filter,     M::matrix_scale,
      M::wide_from,     &finish_by<M>, similarity_of<M>(nullptr),
      overlap_of<M>(0), TableTerms()};
  if constexpr (is_table_metric<M>) made.table = M::terms();
  return made;
}

template <class... M>
std::vector<MetricEntry> entries(const std::tuple<M...>*) {
  return {entry<M>()...};
}

}  // namespace

const std::vector<MetricEntry>& all_metrics() {
  static const std::vector<MetricEntry> all =
      entries(static_cast<const AllMetrics*>(nullptr));
  return all;
}

const MetricEntry& metric_for(const MetricEntry& metric, double largest) {
  static const std::vector<MetricEntry> wide =
      entries(static_cast<const WideMetrics*>(nullptr));
  if (metric.wide_from == kNeverWide || !(largest > 0.0) ||
      exponent_of(largest) < metric.wide_from)
    return metric;
  for (const MetricEntry& m : wide)
    if (std::string(m.name) == metric.name) return m;
  throw std::logic_error("a metric has no entry for wide data");
}

int matrix_exponent(const MetricEntry& metric, double largest) {
  if (metric.matrix_scale == MatrixScale::none || !(largest > 0.0)) return 0;
  const int e = exponent_of(largest);
  // With a larger exponent, small entries would become subnormal and lose
  // digits.
  constexpr int most_to_one = 8;
  if (metric.matrix_scale == MatrixScale::to_one)
    return e < metric.wide_from ? std::min(e, most_to_one) : e;
  // 2^962 times 2^31 features is a double. Below -1022, the square of 2^e is
  // not a product of two doubles; products are far below double's range there.
  if (metric.matrix_scale == MatrixScale::products)
    return std::max(e - 480, -1022);
  constexpr int highest = 980;  // 2^980 times 2^31 features is a double
  return e > highest ? e - highest : 0;
}

int distance_exponent(const MetricEntry& metric, int matrix_exponent) {
  switch (metric.matrix_scale) {
    case MatrixScale::none:
    case MatrixScale::overlap: return 0;
    case MatrixScale::to_one:
    case MatrixScale::sums: return matrix_exponent;
    case MatrixScale::products: return 2 * matrix_exponent;
  }
  throw_unknown("scale", static_cast<int>(metric.matrix_scale));
}

void throw_unknown(const char* what, int value) {
  throw std::logic_error("no " + std::string(what) + " has the number " +
                         std::to_string(value));
}

const char* sign_name(Sign sign) {
  switch (sign) {
    case Sign::signed_value: return "signed";
    case Sign::absolute: return "absolute";
    case Sign::negative: return "negative";
  }
  throw_unknown("sign", static_cast<int>(sign));
}

const MetricEntry& find_metric(std::string_view name, std::string_view sign) {
  for (const MetricEntry& m : all_metrics())
    if (name == m.name && sign == sign_name(m.sign)) return m;
  throw std::invalid_argument("no metric \"" + std::string(name) +
                              "\" with sign \"" + std::string(sign) + "\"");
}

}  // namespace fsknn
