// Simulated data for paper_tables.R, quickly: sums of latent factors plus
// noise. Compiled by it with R CMD SHLIB; no part of the package.

#include <algorithm>
#include <cstdint>
#include <vector>

#define R_NO_REMAP
#include <Rinternals.h>

namespace {

/// Depends on the place alone, so on no number of threads.
std::uint64_t mixed(std::uint64_t at) {
  std::uint64_t x = at + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// The sum of four uniform numbers of 16 bits, variance 1: near enough to a
/// normal one.
float normal(std::uint64_t at) {
  const std::uint64_t x = mixed(at);
  const std::uint32_t sum =
      (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
  return (static_cast<float>(sum) - 131070.0f) * (1.7320508f / 65536.0f);
}

constexpr std::int64_t kRows = 256;  // worked on at a time

void simulate(double* out, std::int64_t n, std::int64_t d, std::int64_t factors,
              int threads) {
  const std::uint64_t noise_from = 1ull << 48, loading_from = 1ull << 50;
  std::vector<float> loading(static_cast<std::size_t>(factors * d));
  for (std::size_t at = 0; at < loading.size(); ++at)
    loading[at] = normal(loading_from + at);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> score(static_cast<std::size_t>(factors * kRows));
    std::vector<float> sum(static_cast<std::size_t>(kRows));
#pragma omp for schedule(dynamic)
    for (std::int64_t block = 0; block < (n + kRows - 1) / kRows; ++block) {
      const std::int64_t first = block * kRows;
      const std::int64_t count = std::min(kRows, n - first);
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t k = 0; k < factors; ++k)
          score[static_cast<std::size_t>(k * kRows + i)] =
              normal(static_cast<std::uint64_t>((first + i) * factors + k));
      for (std::int64_t f = 0; f < d; ++f) {
        for (std::int64_t i = 0; i < count; ++i)
          sum[static_cast<std::size_t>(i)] =
              normal(noise_from +
                     static_cast<std::uint64_t>(f * n + first + i));
        for (std::int64_t k = 0; k < factors; ++k) {
          const float weight =
              loading[static_cast<std::size_t>(f * factors + k)];
          const float* from = score.data() + k * kRows;
          for (std::int64_t i = 0; i < count; ++i)
            sum[static_cast<std::size_t>(i)] += weight * from[i];
        }
        std::copy_n(sum.data(), count, out + f * n + first);
      }
    }
  }
}

}  // namespace

extern "C" SEXP paper_simulate(SEXP points, SEXP features, SEXP factors,
                               SEXP threads) {
  const int n = Rf_asInteger(points), d = Rf_asInteger(features);
  SEXP x = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  simulate(REAL(x), n, d, Rf_asInteger(factors), Rf_asInteger(threads));
  UNPROTECT(1);
  return x;
}
