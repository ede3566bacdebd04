#include "core/rows/vanishing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/subset.hpp"

namespace fsknn {
namespace {

/// Whether a value occurs at least `least` times, where `least` is more than a
/// third of all. Such a value is one of the two that remain after cancelling
/// triples of different values (Misra and Gries 1982).
bool has_frequent(const double* x, const double* end, std::int64_t least) {
  double value[2] = {0.0, 0.0};
  std::int64_t count[2] = {0, 0};
  for (const double* v = x; v < end; ++v) {
    if (count[0] > 0 && *v == value[0]) {
      ++count[0];
    } else if (count[1] > 0 && *v == value[1]) {
      ++count[1];
    } else if (count[0] == 0 || count[1] == 0) {
      const int free = count[0] == 0 ? 0 : 1;
      value[free] = *v;
      count[free] = 1;
    } else {
      --count[0];
      --count[1];
    }
  }
  for (const int c : {0, 1})
    if (count[c] > 0 && std::count(x, end, value[c]) >= least) return true;
  return false;
}

/// Whether the row could vanish on `fewest` of its d values. Reorders them.
bool may_vanish(Vanishing::Rule rule, double* x, std::int64_t d,
                std::int64_t fewest) {
  double* const end =
      std::partition(x, x + d, [](double v) { return !std::isnan(v); });
  const std::int64_t least = fewest - (x + d - end);  // the rest are missing
  if (least <= 0) return true;
  if (rule == Vanishing::Rule::zero) return std::count(x, end, 0.0) >= least;
  if (3 * least > end - x) return has_frequent(x, end, least);
  std::sort(x, end);
  for (const double* v = x; end - v >= least; ++v)
    if (v[least - 1] == *v) return true;
  return false;
}

bool vanishes(Vanishing::Rule rule, const double* x,
              const std::vector<std::int32_t>& features) {
  double known = rule == Vanishing::Rule::zero
                     ? 0.0
                     : std::numeric_limits<double>::quiet_NaN();
  for (const std::int32_t f : features) {
    const double v = x[f];
    if (std::isnan(v)) continue;
    if (std::isnan(known)) known = v;
    if (v != known) return false;
  }
  return true;
}

/// The rows of a source for which keep(row) holds, ascending. keep may modify
/// its argument.
template <class Keep>
std::vector<std::int64_t> rows_where(const RowSource& source, int num_threads,
                                     Progress* progress, Keep keep) {
  const std::int64_t n = source.num_points(), d = source.num_features();
  const std::int64_t at_once = rows_per_block(d);
  std::vector<std::int64_t> kept;
  struct Worker {
    Buffer<double> rows;
    std::vector<std::int64_t> kept;
  };
  const double operations =
      4.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces((n + at_once - 1) / at_once,
             useful_threads(num_threads, operations), {progress, 0.0, 0.0},
             [&] {
               return Worker{Buffer<double>(at_once * d), {}};
             },
             [&](Worker& worker, std::int64_t piece) {
               const std::int64_t first = piece * at_once;
               const std::int64_t count = std::min(at_once, n - first);
               source.read(first, count, worker.rows.data(), d);
               for (std::int64_t r = 0; r < count; ++r)
                 if (keep(worker.rows.data() + r * d))
                   worker.kept.push_back(first + r);
             },
             [&](Worker& worker) {
               kept.insert(kept.end(), worker.kept.begin(), worker.kept.end());
             });
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

Vanishing::Vanishing(const RowSource& values, Rule rule, std::int64_t fewest,
                     int num_threads, Progress* progress)
    : values_(values), rule_(rule) {
  if (rule == Rule::none) return;
  const std::int64_t d = values.num_features();
  for (const std::int64_t i : rows_where(
           values, num_threads, progress,
           [&](double* row) { return may_vanish(rule, row, d, fewest); }))
    candidates_.push_back(static_cast<std::int32_t>(i));
}

std::vector<std::int64_t> Vanishing::by(
    const std::vector<std::int32_t>& features, int num_threads,
    Progress* progress) const {
  if (candidates_.empty()) return {};
  const RowSubset rows(values_, candidates_);
  std::vector<std::int64_t> gone = rows_where(
      rows, num_threads, progress,
      [&](const double* row) { return vanishes(rule_, row, features); });
  for (std::int64_t& i : gone) i = candidates_[static_cast<std::size_t>(i)];
  return gone;
}

}  // namespace fsknn
