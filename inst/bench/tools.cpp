// What R is too slow for: simulated data, and distances of sampled rows in double
// by formulas of their own. Compiled by harness.R with R CMD SHLIB; no part of the
// package.

// R's own flags, with -O2, come after those that a Makevars asks for.
#pragma GCC optimize("O3")

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
  if (std::strcmp(name, "proportional") == 0 ||
      std::strcmp(name, "sorensen") == 0)  // of 0 and 1
    return Kind::proportional;
  if (std::strcmp(name, "euclidean") == 0) return Kind::euclidean;
  return Kind::correlation;
}

struct Points {
  const double* x;
  std::int64_t n, d;
};

/// Sums over all features: of x - level, and of its square; level is the row's
/// own first entry, so that a high level costs no digits.
struct Moments {
  std::vector<double> sum, square;
};

/// Distances of `row` to points first .. first + count - 1.
void distances(const Points& p, Kind kind, const Moments& moments,
               const double* row, std::int64_t first, std::int64_t count,
               double* out) {
  double row_sum = 0, row_square = 0, row_level = 0;
  for (std::int64_t f = 0; f < p.d; ++f) {
    row_sum += row[f];
    row_level += row[f] - row[0];
    row_square += (row[f] - row[0]) * (row[f] - row[0]);
  }
  std::fill_n(out, count, 0.0);
  const double* const level = p.x + first;
  for (std::int64_t f = 0; f < p.d; ++f) {
    const double* column = p.x + f * p.n + first;
    const double y = row[f];
    switch (kind) {
      case Kind::correlation:
        for (std::int64_t i = 0; i < count; ++i)
          out[i] += (y - row[0]) * (column[i] - level[i]);
        break;
      case Kind::manhattan:
        for (std::int64_t i = 0; i < count; ++i)
          out[i] += std::fabs(y - column[i]);
        break;
      case Kind::chebyshev:
        for (std::int64_t i = 0; i < count; ++i) {
          const double t = std::fabs(y - column[i]);
          out[i] = out[i] < t ? t : out[i];
        }
        break;
      case Kind::euclidean:
        for (std::int64_t i = 0; i < count; ++i)
          out[i] += (y - column[i]) * (y - column[i]);
        break;
      case Kind::proportional:
        for (std::int64_t i = 0; i < count; ++i)
          out[i] += y < column[i] ? y : column[i];
    }
  }
  const double d = static_cast<double>(p.d);
  const double row_variance = row_square - row_level * row_level / d;
  for (std::int64_t i = 0; i < count; ++i) {
    const double sum = moments.sum[first + i];
    switch (kind) {
      case Kind::correlation:
        out[i] = 1 - (out[i] - row_level * sum / d) /
                         std::sqrt(row_variance *
                                   (moments.square[first + i] - sum * sum / d));
        break;
      case Kind::proportional:
        out[i] = 1 - 2 * out[i] / (row_sum + sum + d * level[i]);
        break;
      case Kind::euclidean: out[i] = std::sqrt(out[i]); break;
      default: break;
    }
  }
}

constexpr std::int64_t kTile = 512;

Moments moments_of(const Points& p, int num_threads) {
  Moments m;
  m.sum.assign(p.n, 0);
  m.square.assign(p.n, 0);
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
  for (std::int64_t first = 0; first < p.n; first += kTile)
    for (std::int64_t f = 0; f < p.d; ++f) {
      const std::int64_t end = std::min(first + kTile, p.n);
      const double* const column = p.x + f * p.n;
      for (std::int64_t i = first; i < end; ++i) {
        const double t = column[i] - p.x[i];
        m.sum[i] += t;
        m.square[i] += t * t;
      }
    }
  return m;
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
  const double tolerance = Rf_asReal(tolerance_);
  const int num_threads = Rf_asInteger(threads);
  const Moments moments = moments_of(p, num_threads);
  constexpr std::int64_t at_once = 64;
  std::vector<double> all(std::min(m, at_once) * p.n);
  double wrong = 0, error = 0;
  for (std::int64_t r0 = 0; r0 < m; r0 += at_once) {
    const std::int64_t count = std::min(at_once, m - r0);
    std::vector<double> own(count * p.d);
    for (std::int64_t r = 0; r < count; ++r)
      for (std::int64_t f = 0; f < p.d; ++f)
        own[r * p.d + f] = p.x[f * p.n + row[r0 + r] - 1];
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (std::int64_t first = 0; first < p.n; first += kTile)
      for (std::int64_t r = 0; r < count; ++r)
        distances(p, kind, moments, own.data() + r * p.d, first,
                  std::min(kTile, p.n - first), all.data() + r * p.n + first);
#pragma omp parallel for schedule(dynamic) num_threads(num_threads) \
    reduction(+ : wrong) reduction(max : error)
    for (std::int64_t r = 0; r < count; ++r) {
      const double* const ours = all.data() + r * p.n;
      std::vector<double> sorted;
      for (std::int64_t i = 0; i < p.n; ++i)
        if (i != row[r0 + r] - 1 && ours[i] == ours[i])
          sorted.push_back(ours[i]);
      std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end());
      const double limit = sorted[k - 1];
      for (std::int64_t rank = 0; rank < k; ++rank) {
        const std::int64_t at = rank * m + r0 + r;
        const double here = ours[found[at] - 1];
        wrong += !(here <= limit + tolerance * (1 + limit));
        error = std::max(error, std::fabs(given[at] - here) / (1 + here));
      }
    }
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = wrong;
  REAL(out)[1] = error;
  UNPROTECT(1);
  return out;
}

}  // extern "C"
