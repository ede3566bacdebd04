#include "core/search/triples.hpp"

#include <cmath>
#include <cstring>

#include "core/base/poll.hpp"
#include "core/contract/metrics.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/split_mix.hpp"

namespace fsknn {

double threshold_that_fits(const DistanceTally& tally, double most) {
  const double reach = tally.reach(most);
  // Similarities above 1 are possible with a table's large multiplier.
  if (reach < -0x1p-40 && std::isfinite(reach))
    return (1.0 - reach) * (1.0 + 0x1p-50);
  if (!(reach >= 0.0)) return std::numeric_limits<double>::infinity();
  return std::min(1.0, (1.0 - reach) + 0x1p-50);
}

std::uint64_t checksum_of(const Triple& triple) {
  std::uint64_t bits;
  std::memcpy(&bits, &triple.similarity, sizeof bits);
  const std::uint64_t pair =
      static_cast<std::uint64_t>(triple.from) << 32 |
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(triple.to));
  return mixed_number(mixed_number(mixed_number(pair, 0),
                                   static_cast<std::uint64_t>(triple.third)),
                      bits);
}

std::uint64_t checksum_of(std::int64_t bin, double count) {
  return mixed_number(static_cast<std::uint64_t>(bin + 1), 0) *
         static_cast<std::uint64_t>(count);
}

PreparedPoints prepare_triples(const Request& asked, const RowSource& source,
                               RowKernel kernel, int num_threads,
                               Progress* progress) {
  const Request request = suited(asked, source, nullptr, progress);
  const int exponent = common_exponent(request, source, nullptr, num_threads);
  PreparedPoints points =
      prepare_points(source, recipe_of(request, exponent), request.skip, false,
                     kernel, num_threads, progress);
  points.wide = request.metric->matrix_scale == MatrixScale::none &&
                !request.metric->is_table();
  return points;
}

TableEntry table_of_three(const MetricEntry& metric,
                          const PreparedPoints& points, std::int64_t a,
                          std::int64_t b, std::int64_t c) {
  const double* const x = points.row(Place{a});
  const double* const y = points.row(Place{b});
  const double* const z = points.row(Place{c});
  // Whole numbers are exact in any order.
  ThreeSums s = {0.0,           0.0, 0.0, 0.0, points.sums[a], points.sums[b],
                 points.sums[c]};
  for (std::int64_t f = 0; f < points.num_features; ++f) {
    s.abc += x[f] * y[f] * z[f];
    s.ab += x[f] * y[f];
    s.ac += x[f] * z[f];
    s.bc += y[f] * z[f];
  }
  TableEntry found;
  found.similarity =
      AlleleTable::similarity_of_three(s, metric.table, found.which);
  return found;
}

std::size_t bin_of(const std::vector<double>& breaks, double similarity) {
  if (similarity == breaks.back()) return breaks.size() - 1;
  return static_cast<std::size_t>(
      std::upper_bound(breaks.begin(), breaks.end(), similarity) -
      breaks.begin());
}

TriplePairs pairs_of(const MetricEntry& metric, const PreparedPoints& points,
                     const Triple& triple, const double* sums) {
  const auto sum_at = [&](std::int32_t id) {
    return points.sums[points.order.place_of(PointId{id}).value];
  };
  const double sum_a = sum_at(triple.from), sum_b = sum_at(triple.to);
  const double sum_c = sum_at(triple.third);
  const double alike[] = {metric.similarity(sums[0], sum_a, sum_b),
                          metric.similarity(sums[1], sum_a, sum_c),
                          metric.similarity(sums[2], sum_b, sum_c)};
  if (metric.is_table()) {
    const auto place = [&](std::int32_t id) {
      return points.order.place_of(PointId{id}).value;
    };
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {alike[0],
            alike[1],
            alike[2],
            none,
            none,
            table_of_three(metric, points, place(triple.from), place(triple.to),
                           place(triple.third))
                .which};
  }
  // For wide data, sums by parts if the rows' sums are, or if the total is too
  // large.
  const bool by_parts = sum_a < 0.0 || sum_b < 0.0 || sum_c < 0.0 ||
                        !(total_of_three(sum_a, sum_b, sum_c) < 0x1p1023);
  const auto own = [&](double sum) {
    return by_parts ? part_of_sum(sum) : sum;
  };
  const double a = own(sum_a), b = own(sum_b), c = own(sum_c);
  const double total = total_of_three(a, b, c);
  const double ab = (a + b) - own(sums[0]), ac = (a + c) - own(sums[1]);
  const double bc = (b + c) - own(sums[2]);
  const double least = std::max(ab, std::max(ac, bc));
  const double most =
      std::min((ab + ac) - a, std::min((ab + bc) - b, (ac + bc) - c));
  // Rounding may move a bound past the similarity by a bit or two.
  return {alike[0],
          alike[1],
          alike[2],
          std::min(similarity_of_three(most, total), triple.similarity),
          std::max(similarity_of_three(least, total), triple.similarity),
          -1};
}

TripleOwners::TripleOwners(const PreparedPoints& points,
                           const std::vector<std::int32_t>& contains)
    : all_(contains.empty()),
      contained_(static_cast<std::size_t>(points.size()), 0) {
  for (const std::int32_t id : contains) {
    const Place place = points.order.place_of(PointId{id});
    if (!place.none()) contained_[static_cast<std::size_t>(place.value)] = 1;
  }
  for (std::int64_t p = 0; p < points.size(); ++p)
    if (all_ || contained_[static_cast<std::size_t>(p)]) apexes_.push_back(p);
}

TripleShare::TripleShare(const TripleOwners& owners,
                         const TripleQuestion& question,
                         std::int64_t num_points, double part, double parts)
    : owners_(&owners),
      question_(&question),
      begin_(cut_at(part / parts, num_points)),
      end_(cut_at((part + 1) / parts, num_points)) {}

// The end of one range and the beginning of the next come from the same double,
// and the sums never decrease as the share grows. So every triple is in exactly
// one range.
TripleShare::Row TripleShare::cut_at(double share,
                                     std::int64_t num_points) const {
  const std::vector<std::int64_t>& apexes = owners_->apexes();
  const Row last = {num_points, 0};
  if (share >= 1.0) return last;
  const auto triples_of = [&](std::size_t i) {
    const double others =
        static_cast<double>(num_points) - 1.0 - static_cast<double>(i);
    return others * (others - 1.0) / 2.0;
  };
  double all = 0.0;
  for (std::size_t i = 0; i < apexes.size(); ++i) all += triples_of(i);
  const double wanted = all * share;
  double before = 0.0;
  for (std::size_t i = 0; i < apexes.size(); ++i) {
    if (before + triples_of(i) <= wanted) {
      before += triples_of(i);
      continue;
    }
    double above =
        static_cast<double>(num_points) - 2.0 - static_cast<double>(i);
    for (std::int64_t lower = 0; lower < num_points; ++lower) {
      if (!owners_->has(apexes[i], lower)) continue;
      if (before + above > wanted) return {apexes[i], lower};
      before += above;
      above -= 1.0;
    }
    return {apexes[i], num_points};
  }
  return last;
}

std::vector<std::int64_t> TripleShare::apexes() const {
  std::vector<std::int64_t> which;
  for (const std::int64_t apex : owners_->apexes())
    if (has_apex(apex)) which.push_back(apex);
  return which;
}

std::vector<TripleApex> TripleShare::parts(std::int64_t num_points,
                                           double least) const {
  std::vector<TripleApex> found;
  for (const std::int64_t apex : apexes()) {
    const std::int64_t begin = apex == begin_.apex ? begin_.lower : 0;
    const std::int64_t end = apex == end_.apex ? end_.lower : num_points;
    if (begin < end) found.push_back({apex, begin, end, least});
  }
  return found;
}

std::vector<std::int64_t> nearly_empty_rows(const PreparedPoints& points) {
  std::vector<std::int64_t> rows;
  for (std::int64_t p = 0; p < points.size(); ++p)
    if (points.sums[p] < kNearlyEmpty) rows.push_back(p);
  return rows;
}

TripleBound::TripleBound(double least, std::int64_t padded)
    : share(std::numeric_limits<double>::infinity()),
      third(share),
      pair_distance(1.0) {
  if (!(least > 0.0)) return;
  const double rounding = rounding_of_sums(padded);
  share = (1.0 - (2.0 / 3.0) * (least - 0x1p-50)) * (1.0 + rounding) *
          (1.0 + 0x1p-48);
  const double own = share * (1.0 + 2.0 * rounding);
  if (!(own < 1.0)) return;
  third = own / (1.0 - own) * (1.0 + 0x1p-48);
  const double of_pair = share * (1.0 + third) * (1.0 + 0x1p-48);
  pair_distance = std::min(1.0, 2.0 * of_pair - 1.0 + 8.0 * rounding);
}

std::vector<Triple> brute_triples(const Request& request,
                                  const TripleQuestion& question,
                                  const RowSource& points) {
  const PreparedPoints rows =
      prepare_triples(request, points, &prepare_row<ScalarLanes>, 1, nullptr);
  const TripleOwners owners(rows, question.contains);
  const MetricEntry metric = metric_of(request, rows);
  std::vector<Triple> found;
  for (const std::int64_t i : owners.apexes())
    for (std::int64_t j = 0; j < rows.size(); ++j) {
      if (!owners.has(i, j) || !is_in_stage(owners, question, i, j)) continue;
      for (std::int64_t k = j + 1; k < rows.size(); ++k) {
        if (!owners.has(i, k)) continue;
        poll_after(static_cast<double>(rows.padded));
        const double similarity =
            metric.is_table() ? table_of_three(metric, rows, i, j, k).similarity
                              : similarity_of_three(
                                    sum_of_largest<ScalarLanes>(
                                        rows.row(Place{i}), rows.row(Place{j}),
                                        rows.row(Place{k}), rows.padded),
                                    rows.sums[i], rows.sums[j], rows.sums[k]);
        if (!(similarity >= question.least)) continue;
        std::int64_t at[] = {i, j, k};
        std::sort(at, at + 3);
        found.push_back(triple_at(rows, at[0], at[1], at[2], similarity));
      }
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace fsknn
