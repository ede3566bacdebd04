#include "core/rows/scan.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/prepare.hpp"
#include "core/contract/row_scratch.hpp"

namespace fsknn {
namespace {

constexpr std::size_t kShown = 3;

bool by_column(const Position& a, const Position& b) {
  return a.feature != b.feature ? a.feature < b.feature : a.point < b.point;
}

/// Keeps the first three; one comparison rejects most positions.
void note(std::vector<Position>& at, Position p) {
  if (at.size() == kShown && !by_column(p, at.back())) return;
  at.insert(std::upper_bound(at.begin(), at.end(), p, by_column), p);
  if (at.size() > kShown) at.pop_back();
}

struct RowFacts {
  double least, most;
  bool finite;
};

struct RunningFacts {
  double least, most, zero;
  void take(double value) {
    least = value < least ? value : least;
    most = value > most ? value : most;
    zero += value * 0.0;  // NaN if the value is not finite
  }
};

/// Four running values, so that a comparison need not wait for the previous
/// one. They are variables rather than an array, which stays in memory.
RowFacts facts_of(const double* x, std::int64_t d) {
  const RunningFacts none = {x[0], x[0], 0.0};
  RunningFacts a = none, b = none, c = none, e = none;
  std::int64_t f = 0;
  for (; f + 4 <= d; f += 4) {
    a.take(x[f]);
    b.take(x[f + 1]);
    c.take(x[f + 2]);
    e.take(x[f + 3]);
  }
  for (; f < d; ++f) a.take(x[f]);
  return {std::min({a.least, b.least, c.least, e.least}),
          std::max({a.most, b.most, c.most, e.most}),
          !std::isnan(a.zero + b.zero + c.zero + e.zero)};
}

/// Returns whether all entries, which are finite, are 0, 1 or, of two levels,
/// 2. Only there the product of the differences from these is 0: it does not
/// underflow, since differences from 1 and 2 are at least 2^-53. Branches would
/// be slow for random counts.
bool has_levels(const double* x, std::int64_t d, int levels) {
  const double last = levels < 2 ? 1.0 : 2.0;
  const auto off = [last](double v) {
    return std::fabs(v * (v - 1.0) * (v - last));
  };
  double a = 0.0, b = 0.0, c = 0.0, e = 0.0;
  std::int64_t f = 0;
  for (; f + 4 <= d; f += 4) {
    a += off(x[f]);
    b += off(x[f + 1]);
    c += off(x[f + 2]);
    e += off(x[f + 3]);
  }
  for (; f < d; ++f) a += off(x[f]);
  return a + b + c + e == 0.0;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Counts the entries for which is_wrong() holds, and keeps their first
/// positions. They are ordered column by column, so later columns can no longer
/// be among the first three.
template <class IsWrong>
void note_wrong(const double* x, std::int64_t d, std::int64_t point,
                IsWrong is_wrong, std::int64_t& count,
                std::vector<Position>& at) {
  for (std::int64_t f = 0; f < d; ++f) count += is_wrong(x[f]);
  const std::int64_t last = at.size() < kShown ? d - 1 : at.back().feature;
  for (std::int64_t f = 0; f <= last; ++f)
    if (is_wrong(x[f])) note(at, {point, f});
}

void note_largest(double largest, std::int64_t row, MatrixFacts& facts) {
  const bool first = largest == facts.largest && row < facts.largest_row;
  if (!(largest > facts.largest) && !first) return;
  facts.largest = largest;
  facts.largest_row = row;
}

}  // namespace

bool scan_row(const double* x, std::int64_t d, std::int64_t point,
              const EntriesCounted& counted, MatrixFacts& facts) {
  const RowFacts row = facts_of(x, d);
  if (!row.finite) {
    facts.non_finite_rows.push_back(point);
    for (std::int64_t f = 0; f < d; ++f) {
      if (std::isfinite(x[f])) continue;
      ++facts.non_finite;
      note(facts.non_finite_at, {point, f});
    }
    return false;
  }
  if (counted.negative && row.least < 0.0)
    note_wrong(
        x, d, point, [](double v) { return v < 0.0; }, facts.negative,
        facts.negative_at);
  const int levels = counted.levels;
  if (levels > 0 && !has_levels(x, d, levels))
    note_wrong(
        x, d, point,
        [levels](double v) {
          return v != 0.0 && v != 1.0 && (v != 2.0 || levels < 2);
        },
        facts.off_levels, facts.off_levels_at);
  if (row.least == row.most) facts.constant.push_back(point);
  if (row.least == 0.0 && row.most == 0.0) facts.zero.push_back(point);
  note_largest(std::max(row.most, -row.least), point, facts);
  return row.least < row.most;
}

void add_facts(MatrixFacts& to, const MatrixFacts& from) {
  to.non_finite += from.non_finite;
  to.negative += from.negative;
  for (const Position p : from.non_finite_at) note(to.non_finite_at, p);
  for (const Position p : from.negative_at) note(to.negative_at, p);
  to.off_levels += from.off_levels;
  for (const Position p : from.off_levels_at) note(to.off_levels_at, p);
  append(to.non_finite_rows, from.non_finite_rows);
  append(to.constant, from.constant);
  append(to.zero, from.zero);
  append(to.explained, from.explained);
  note_largest(from.largest, from.largest_row, to);
}

MatrixFacts scan(const RowSource& source, int num_threads, Progress* progress,
                 const EntriesCounted& counted, const Preparing& preparing) {
  const std::int64_t n = source.num_points(), d = source.num_features();
  const bool prepares = preparing.kernel != nullptr;
  const std::int64_t padded = prepares ? padded_features(d) : d;
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  std::vector<MatrixFacts> of_block(static_cast<std::size_t>(num_blocks));
  // To turn an entry of a column into a row costs some nanoseconds.
  const double operations =
      4.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_blocks, useful_threads(num_threads, operations),
             {progress, 0.0, 0.0}, [&] {
               return [&, rows = Buffer<double>(block_rows * padded),
                       scratch = RowScratch()](std::int64_t b) mutable {
                 const std::int64_t first = b * block_rows;
                 const std::int64_t count = std::min(block_rows, n - first);
                 MatrixFacts& facts = of_block[static_cast<std::size_t>(b)];
                 source.read(first, count, rows.data(), padded);
                 for (std::int64_t r = 0; r < count; ++r) {
                   double* const x = rows.data() + r * padded;
                   const bool varies =
                       scan_row(x, d, first + r, counted, facts);
                   if (!varies || !prepares) continue;
                   clear_padding(x, d, padded);
                   preparing.kernel(preparing.recipe, scratch, x, d, padded);
                   if (!scratch.varies) facts.explained.push_back(first + r);
                 }
               };
             });
  MatrixFacts facts;
  for (const MatrixFacts& block : of_block) add_facts(facts, block);
  return facts;
}

}  // namespace fsknn
