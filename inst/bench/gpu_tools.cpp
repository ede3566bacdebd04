// What gpu.R needs and R is slow at: simulated data, and distances of sampled
// rows in long double, by formulas of their own. Compiled by gpu.R with
// R CMD SHLIB; no part of the package.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#define R_NO_REMAP
#include <Rinternals.h>

namespace {

/// Numbers that depend on seed and place only, so on no number of threads.
double uniform(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = (seed << 40) + at + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/// A sum of four uniform numbers, variance 1: near enough to a normal one.
double normal(std::uint64_t seed, std::uint64_t at) {
  double s = -2.0;
  for (std::uint64_t i = 0; i < 4; ++i) s += uniform(seed + 1000 * i, at);
  return s * 1.7320508075688772;
}

enum class Kind { correlation, manhattan, chebyshev, proportional, euclidean };

Kind kind_of(const char* name) {
  if (std::strcmp(name, "manhattan") == 0) return Kind::manhattan;
  if (std::strcmp(name, "chebyshev") == 0) return Kind::chebyshev;
  if (std::strcmp(name, "proportional") == 0) return Kind::proportional;
  if (std::strcmp(name, "euclidean") == 0) return Kind::euclidean;
  return Kind::correlation;
}

struct Points {
  const double* x;
  std::int64_t n, d;
};

/// Distances of one row to rows first .. first + count - 1.
void distances(const Points& p, Kind kind, const double* row,
               std::int64_t first, std::int64_t count, long double* out) {
  std::vector<long double> a(count, 0), b(count, 0), c(count, 0);
  long double row_sum = 0, row_square = 0;
  for (std::int64_t f = 0; f < p.d; ++f) row_sum += row[f];
  const long double mean = row_sum / p.d;
  for (std::int64_t f = 0; f < p.d; ++f)
    row_square += (row[f] - mean) * (row[f] - mean);
  // A column's level, taken off so that variances lose no digits.
  for (std::int64_t f = 0; f < p.d; ++f) {
    const double* column = p.x + f * p.n + first;
    const long double y = row[f];
    switch (kind) {
      case Kind::correlation:
        for (std::int64_t i = 0; i < count; ++i) {
          a[i] += column[i];
          b[i] += static_cast<long double>(column[i]) * column[i];
          c[i] += (y - mean) * column[i];
        }
        break;
      case Kind::manhattan:
        for (std::int64_t i = 0; i < count; ++i) a[i] += std::fabs(y - column[i]);
        break;
      case Kind::chebyshev:
        for (std::int64_t i = 0; i < count; ++i)
          a[i] = std::max(a[i], std::fabs(y - column[i]));
        break;
      case Kind::euclidean:
        for (std::int64_t i = 0; i < count; ++i)
          a[i] += (y - column[i]) * (y - column[i]);
        break;
      case Kind::proportional:
        for (std::int64_t i = 0; i < count; ++i) {
          a[i] += std::min<long double>(y, column[i]);
          b[i] += column[i];
        }
    }
  }
  for (std::int64_t i = 0; i < count; ++i) switch (kind) {
      case Kind::correlation:
        out[i] = 1 - c[i] / std::sqrt(row_square * (b[i] - a[i] * a[i] / p.d));
        break;
      case Kind::proportional: out[i] = 1 - 2 * a[i] / (row_sum + b[i]); break;
      case Kind::euclidean: out[i] = std::sqrt(a[i]); break;
      default: out[i] = a[i];
    }
}

}  // namespace

extern "C" {

/// n x d: `factors` latent factors and noise, all of variance 1.
SEXP bench_simulate(SEXP rows, SEXP columns, SEXP factors, SEXP seed_,
                    SEXP threads) {
  const std::int64_t n = Rf_asInteger(rows), d = Rf_asInteger(columns);
  const std::int64_t q = Rf_asInteger(factors);
  const std::uint64_t seed = static_cast<std::uint64_t>(Rf_asInteger(seed_)) * 7;
  const int num_threads = Rf_asInteger(threads);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  double* x = REAL(out);
  std::vector<double> scores(q * d);
  for (std::int64_t i = 0; i < q * d; ++i) scores[i] = normal(seed, i);
  constexpr std::int64_t tile = 128;
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t count = std::min(tile, n - first);
    std::vector<double> loadings(q * tile), sum(tile);
    for (std::int64_t l = 0; l < q; ++l)
      for (std::int64_t i = 0; i < count; ++i)
        loadings[l * tile + i] = normal(seed + 1, (first + i) * q + l);
    for (std::int64_t f = 0; f < d; ++f) {
      for (std::int64_t i = 0; i < count; ++i)
        sum[i] = normal(seed + 2, (first + i) * d + f);
      for (std::int64_t l = 0; l < q; ++l) {
        const double score = scores[l * d + f];
        for (std::int64_t i = 0; i < tile; ++i)
          sum[i] += score * loadings[l * tile + i];
      }
      std::copy_n(sum.data(), count, x + f * n + first);
    }
  }
  UNPROTECT(1);
  return out;
}

/// Neighbours of rows (1-based) of x, index and distance [rows x k], against all
/// points. Gives c(wrong, error): neighbours that are farther than the k-th
/// nearest by more than `tolerance`, and the largest |distance - ours|, both
/// relative to 1 + distance.
SEXP bench_check(SEXP x_, SEXP rows, SEXP index, SEXP distance, SEXP metric,
                 SEXP tolerance_, SEXP threads) {
  const Points p = {REAL(x_), Rf_nrows(x_), Rf_ncols(x_)};
  const Kind kind = kind_of(CHAR(STRING_ELT(metric, 0)));
  const std::int64_t m = Rf_length(rows), k = Rf_ncols(index);
  const int *row = INTEGER(rows), *found = INTEGER(index);
  const double* given = REAL(distance);
  const long double tolerance = Rf_asReal(tolerance_);
  const int num_threads = Rf_asInteger(threads);
  double wrong = 0, error = 0;
#pragma omp parallel for schedule(dynamic) num_threads(num_threads) \
    reduction(+ : wrong) reduction(max : error)
  for (std::int64_t r = 0; r < m; ++r) {
    const std::int64_t self = row[r] - 1;
    std::vector<double> own(p.d);
    for (std::int64_t f = 0; f < p.d; ++f) own[f] = p.x[f * p.n + self];
    std::vector<long double> all(p.n);
    constexpr std::int64_t tile = 512;
    for (std::int64_t first = 0; first < p.n; first += tile)
      distances(p, kind, own.data(), first, std::min(tile, p.n - first),
                all.data() + first);
    std::vector<long double> sorted;
    for (std::int64_t i = 0; i < p.n; ++i)
      if (i != self && all[i] == all[i]) sorted.push_back(all[i]);
    std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end());
    const long double limit = sorted[k - 1];
    for (std::int64_t rank = 0; rank < k; ++rank) {
      const std::int64_t at = found[rank * m + r] - 1;
      const long double ours = all[at];
      wrong += !(ours <= limit + tolerance * (1 + limit));
      error = std::max(error, static_cast<double>(
                                  std::fabs(given[rank * m + r] - ours) /
                                  (1 + ours)));
    }
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = wrong;
  REAL(out)[1] = error;
  UNPROTECT(1);
  return out;
}

}  // extern "C"
