#pragma once

// Whether points are met in order of their keys: whether those leave out enough
// tiles of pairs. A sample says how many. Answers are the same.

#include <vector>

#include "cpu/search/keys.hpp"

namespace fsknn {
namespace cpu {

/// In which order points are met, as asked for behind the name of an
/// instruction set, last of all ("auto/sorted", "auto/8/scattered"; a testing
/// aid).
enum class AskedOrder { as_it_pays, sorted, scattered };
AskedOrder asked_order(const Request& request);

/// A row, and how far away its neighbours are, in FilterForm::reach()'s terms.
struct KeyedRow {
  KeyRange key;
  double reach;
};

/// Some rows at the distances of their k-th neighbours. keys: of the rows.
/// queries: null when the points are the rows.
std::vector<KeyedRow> sampled_rows(const MetricEntry& metric,
                                   const DistanceRule& rule,
                                   const Kernels& kernels,
                                   const PreparedPoints& points,
                                   const PreparedPoints* queries,
                                   const PointKeys& keys, std::int64_t k);

/// Some rows at limits that are known; limit: [places].
std::vector<KeyedRow> rows_within(const MetricEntry& metric,
                                  const DistanceRule& rule,
                                  const std::vector<double>& limit,
                                  const PointKeys& keys);

/// What share of the pairs of rows like these and of points with these keys is
/// in tiles that keys do not tell apart, roughly.
double share_by_keys(KeyKind kind, const std::vector<KeyedRow>& rows,
                     const PointKeys& keys);

/// Whether a search has so many pairs that it is worth a look.
bool keys_may_pay(const PreparedPoints& rows, const PreparedPoints& points);
/// Whether so small a share is worth the other order.
bool keys_pay(double share);

}  // namespace cpu
}  // namespace fsknn
