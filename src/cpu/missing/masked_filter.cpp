#include "cpu/missing/masked_filter.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/missing/masked_rounding.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The head of masked_filter.hpp derives this.
constexpr double kSlack = 2e-6;

int count_bits(std::uint64_t x) {
  x -= (x >> 1) & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int>((x * 0x0101010101010101u) >> 56);
}

/// Packs one row at a time into its places of the arrays.
class Packer {
 public:
  Packer(MaskedFilterRows& to, const MaskedPacking& packing)
      : to_(to),
        classes_(packing.classes),
        min_pairs_(packing.min_pairs),
        z_(static_cast<std::size_t>(to.points->num_features)) {}

  void operator()(std::int64_t place) {
    const MaskedPoints& points = *to_.points;
    const std::int64_t d = points.num_features;
    const double known = static_cast<double>(points.known[place]);
    to_float(place, known);
    double residual = 0.0;
    std::int32_t* packed =
        to_.packed.data() + place / 16 * 16 * to_.steps + place % 16;
    for (std::int64_t f = 0; f < d; ++f) {
      const double z = z_[static_cast<std::size_t>(f)];
      const double whole = std::nearbyint(z * kMaskedUnit);
      const double left = z - whole / kMaskedUnit;
      residual += left * left;
      put_masked(packed, static_cast<std::size_t>(f), whole);
    }
    const double rho = std::sqrt(residual) * (1.0 + 1e-6);
    // The error uses rho_i rho_j <= (rho_i^2 + rho_j^2) / 2.
    to_.error[place] = rounded_up(rho * (1.0 + 0x1p-18) + rho * rho / 2 +
                                  kSlack + rounding_of_sums(points.padded));
    bounds(place, known);
  }

 private:
  void to_float(std::int64_t place, double known) {
    const std::int64_t d = to_.points->num_features;
    const double* row = to_.points->row(Place{place});
    float* z = to_.z.data() + place / 16 * 16 * d + place % 16;
    double mean = 0.0;
    for (std::int64_t f = 0; f < d; ++f)
      if (has_value(row[f])) mean += row[f];
    mean /= known;
    double length = 0.0;
    for (std::int64_t f = 0; f < d; ++f)
      if (has_value(row[f])) length += (row[f] - mean) * (row[f] - mean);
    length = std::sqrt(length);
    // A constant row, or one whose squares overflow, becomes zeros: the bound
    // then drops no pair.
    const bool varies = length > 0.0 && length < HUGE_VAL;
    double sum = 0.0, square = 0.0;
    for (std::int64_t f = 0; f < d; ++f) {
      const float value = varies && has_value(row[f])
                              ? static_cast<float>((row[f] - mean) / length)
                              : 0.0f;
      z[f * 16] = value;
      z_[static_cast<std::size_t>(f)] = value;
      sum += value;
      square += static_cast<double>(value) * value;
    }
    to_.sum[place] = sum;
    to_.square[place] = square;
  }

  /// Computes w and alpha for each class of the other row.
  void bounds(std::int64_t place, double known) {
    const std::size_t d = z_.size();
    for (double& z : z_) z = std::fabs(z);
    const std::size_t most =
        std::min(d, static_cast<std::size_t>(classes_.most.back()));
    std::partial_sort(z_.begin(),
                      z_.begin() + static_cast<std::ptrdiff_t>(most), z_.end(),
                      [](double a, double b) { return a > b; });
    double lost = 0.0, lost_square = 0.0;
    std::size_t at = 0;
    for (std::size_t c = 0; c < classes_.most.size(); ++c) {
      const std::size_t end =
          std::min(d, static_cast<std::size_t>(classes_.most[c]));
      for (; at < end; ++at) {
        lost += z_[at];
        lost_square += z_[at] * z_[at];
      }
      const double n = std::max(static_cast<double>(min_pairs_),
                                known - static_cast<double>(classes_.most[c]));
      const double alpha = (std::fabs(to_.sum[place]) + lost) / std::sqrt(n);
      const double left =
          to_.square[place] - lost_square - alpha * alpha - 1e-9;
      const std::int64_t to =
          static_cast<std::int64_t>(c) * to_.num_places + place;
      // |A| never exceeds |z| sqrt(n).
      to_.alpha[to] = rounded_up(std::min(alpha, 1.0 + 0x1p-18));
      to_.w[to] =
          left > 0.0 ? std::max(0.0f, rounded_down(std::sqrt(left))) : 0.0f;
    }
  }

  MaskedFilterRows& to_;
  const MissingClasses& classes_;
  const std::int64_t min_pairs_;
  std::vector<double> z_;
};

void list_features(MaskedFilterRows& rows, bool of_differences) {
  const MaskedPoints& points = *rows.points;
  const std::int64_t d = points.num_features;
  rows.list_start.assign(1, 0);
  rows.longest_list.assign(static_cast<std::size_t>(rows.panel_class.size()),
                           0);
  rows.list_error = Buffer<double>(points.size());
  for (std::int64_t i = 0; i < points.size(); ++i) {
    const bool of_known = points.known[i] < d - points.known[i];
    const double* row = points.row(Place{i});
    if (of_known || points.known[i] < d)
      for (std::int64_t f = 0; f < d; ++f)
        if (has_value(row[f]) == of_known)
          rows.list.push_back(static_cast<std::int32_t>(f));
    rows.lists_known.push_back(of_known);
    rows.list_start.push_back(static_cast<std::int64_t>(rows.list.size()));
    const double length =
        static_cast<double>(rows.list.size()) -
        static_cast<double>(rows.list_start[rows.list_start.size() - 2]);
    std::int64_t& longest =
        rows.longest_list[static_cast<std::size_t>(i / Tile::panel)];
    longest = std::max(longest, static_cast<std::int64_t>(length));
    rows.list_error[i] =
        of_differences
            ? masked_difference_error(static_cast<std::int64_t>(length))
            : (length + 4.0) * 0x1p-24 * std::sqrt(length + 1.0);
  }
}

/// Sums a panel of points in `of`, from place0, over the features that `other`
/// of `others` has.
void sum_common(const Kernels& kernels, const MaskedFilterRows& of,
                std::int64_t place0, const MaskedFilterRows& others,
                std::int64_t other, float* sum, float* square) {
  const std::size_t o = static_cast<std::size_t>(other);
  const std::int64_t start = others.list_start[o];
  kernels.masked_sums(of.z_panel(place0), others.list.data() + start,
                      others.list_start[o + 1] - start, sum, square);
  if (others.lists_known[o]) return;
  const std::int64_t there =
      std::min<std::int64_t>(16, of.points->size() - place0);
  for (std::int64_t c = 0; c < there; ++c) {
    sum[c] = static_cast<float>(of.sum[place0 + c]) - sum[c];
    square[c] = static_cast<float>(of.square[place0 + c]) - square[c];
  }
}

}  // namespace

int MissingClasses::of(std::int64_t missing) const {
  int c = 0;
  while (most[static_cast<std::size_t>(c)] < missing) ++c;
  return c;
}

MissingClasses missing_classes(const MaskedPoints& a, const MaskedPoints* b) {
  std::vector<std::int32_t> missing;
  for (const MaskedPoints* points : {&a, b})
    for (std::int64_t i = 0; points != nullptr && i < points->size(); ++i)
      missing.push_back(static_cast<std::int32_t>(points->num_features) -
                        points->known[i]);
  std::sort(missing.begin(), missing.end());
  MissingClasses classes;
  // Few rows lack many values, so that the upper classes hold fewer rows.
  for (const double share : {0.25, 0.5, 0.8, 0.95, 0.99, 1.0}) {
    const std::int32_t most = missing[static_cast<std::size_t>(
        share * static_cast<double>(missing.size() - 1))];
    if (classes.most.empty() || most > classes.most.back())
      classes.most.push_back(most);
  }
  return classes;
}

MaskedFilterRows pack_masked(const MaskedPoints& points,
                             const MaskedPacking& packing,
                             std::int64_t num_places, int num_threads,
                             Progress* progress) {
  const MissingClasses& classes = packing.classes;
  MaskedFilterRows rows;
  rows.points = &points;
  const std::int64_t n = points.size(), d = points.num_features;
  const std::int64_t num_classes =
      static_cast<std::int64_t>(classes.most.size());
  rows.num_places = num_places;
  rows.steps = (d + 1) / 2;
  rows.packed = Buffer<std::int32_t>(num_places * rows.steps);
  std::fill_n(rows.packed.data(), rows.packed.size(), 0);
  rows.panel_class = Buffer<std::int32_t>(num_places / Tile::panel);
  const bool of_differences = packing.units != nullptr;
  const auto zeros = [](Buffer<float>& all, std::int64_t size) {
    all = Buffer<float>(size);
    std::fill_n(all.data(), size, 0.0f);
  };
  zeros(rows.w, num_classes * num_places);
  if (of_differences) {
    for (Buffer<float>* all :
         {&rows.scale, &rows.square_below, &rows.minus_largest, &rows.missing})
      zeros(*all, num_places);
    rows.margin = masked_difference_margin(d);
  } else {
    zeros(rows.error, num_places);
    zeros(rows.alpha, num_classes * num_places);
  }
  rows.z = Buffer<float>(num_places * d);
  // Only padding needs this, but it is little.
  std::fill_n(rows.z.data(), rows.z.size(), 0.0f);
  rows.sum = Buffer<double>(n);
  rows.square = Buffer<double>(n);
  for (std::int64_t p = 0; p < rows.panel_class.size(); ++p) {
    std::int64_t most = 0;
    for (std::int64_t i = p * Tile::panel;
         i < std::min<std::int64_t>(n, (p + 1) * Tile::panel); ++i)
      most = std::max<std::int64_t>(most, d - points.known[i]);
    rows.panel_class[p] = classes.of(most);
  }
  const std::int64_t num_panels = rows.panel_class.size();
  const double operations =
      32.0 * static_cast<double>(n) * static_cast<double>(d);
  const auto run = [&](auto make_packer) {
    run_pieces(num_panels, useful_threads(num_threads, operations),
               {progress, 0.0, 0.0}, [&] {
                 return [&, pack = make_packer()](std::int64_t panel) mutable {
                   const std::int64_t end =
                       std::min<std::int64_t>(n, (panel + 1) * Tile::panel);
                   for (std::int64_t i = panel * Tile::panel; i < end; ++i)
                     pack(i);
                 };
               });
  };
  if (of_differences)
    run([&] { return MaskedDifferencePacker(rows, packing); });
  else
    run([&] { return Packer(rows, packing); });
  list_features(rows, of_differences);
  return rows;
}

double masked_unit() { return 1.0 / (kMaskedUnit * kMaskedUnit); }

float masked_threshold(double distance) {
  // The distance 1 - similarity was rounded once. No distance exceeds 2, and a
  // larger limit may exceed the range of a float.
  return rounded_down((1.0 - std::min(distance, 4.0)) - 0x1p-50);
}

void sum_of_rows(const Kernels& kernels, const MaskedFilterRows& rows,
                 std::int64_t row0, const MaskedFilterRows& columns,
                 std::int64_t column, float* a, float* x) {
  sum_common(kernels, rows, row0, columns, column, a, x);
}

void sum_of_columns(const Kernels& kernels, const MaskedFilterRows& rows,
                    std::int64_t row, const MaskedFilterRows& columns,
                    std::int64_t column0, int panels, float* b, float* y) {
  for (int p = 0; p < panels; ++p)
    sum_common(kernels, columns, column0 + p * 16, rows, row, b + p * 16,
               y + p * 16);
}

std::int64_t masked_common(const MaskedFilterRows& rows,
                           const MaskedFilterRows& columns,
                           const MaskedPair& pair) {
  const std::uint64_t* p = rows.points->mask(Place{pair.row});
  const std::uint64_t* q = columns.points->mask(Place{pair.column});
  std::int64_t n = 0;
  for (std::int64_t w = 0; w < rows.points->words; ++w)
    n += count_bits(p[w] & q[w]);
  return n;
}

bool may_be_near(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                 const MaskedPair& pair, Sign sign, std::int64_t min_pairs,
                 float threshold) {
  const std::int64_t n = masked_common(rows, columns, pair);
  if (n < min_pairs) return false;
  if (!(threshold > 0.0f)) return true;
  // These are in units of sqrt(n): each is at most 1 apart from rounding.
  const double unit = 1.0 / std::sqrt(static_cast<double>(n));
  const double a = pair.a * unit, b = pair.b * unit;
  const double error_a = columns.list_error[pair.column] * unit;
  const double error_b = rows.list_error[pair.row] * unit;
  const double xx = pair.x - a * a - columns.list_error[pair.column] -
                    (2.0 * std::fabs(a) + error_a) * error_a - 2e-6;
  const double yy = pair.y - b * b - rows.list_error[pair.row] -
                    (2.0 * std::fabs(b) + error_b) * error_b - 2e-6;
  if (!(xx > 0.0) || !(yy > 0.0)) return true;  // there is no bound
  double similarity = pair.sum * masked_unit() - a * b;
  if (sign == Sign::absolute) similarity = std::fabs(similarity);
  if (sign == Sign::negative) similarity = -similarity;
  const double error = static_cast<double>(rows.error[pair.row]) +
                       static_cast<double>(columns.error[pair.column]) +
                       std::fabs(a) * error_b + std::fabs(b) * error_a +
                       error_a * error_b;
  return similarity + error >=
         static_cast<double>(threshold) * std::sqrt(xx * yy) * (1.0 - 1e-12);
}

}  // namespace cpu
}  // namespace fsknn
