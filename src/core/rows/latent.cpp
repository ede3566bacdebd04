#include "core/rows/latent.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace fsknn {
namespace {

const LatentRule& checked(const LatentRule& rule, std::int64_t num_points) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (num_points < 0 || num_points > most || rule.num_features < 1 ||
      rule.num_features > most || rule.num_factors < 1 ||
      rule.num_factors > LatentRule::kMostFactors || rule.noise < 0)
    throw std::invalid_argument("there are no such latent rows");
  return rule;
}

}  // namespace

LatentSource::LatentSource(const LatentRule& rule, std::int64_t num_points)
    : rule_(checked(rule, num_points)),
      num_points_(num_points),
      loadings_(
          static_cast<std::size_t>(rule.num_factors * rule.num_features)) {
  std::size_t at = 0;
  for (std::int32_t j = 0; j < rule.num_factors; ++j)
    for (std::int64_t f = 0; f < rule.num_features; ++f)
      loadings_[at++] = rule.loading(j, f);
}

void LatentSource::read(std::int64_t first, std::int64_t count, double* out,
                        std::int64_t stride) const {
  const std::int64_t d = rule_.num_features;
  // The sums of this many features stay in the cache.
  constexpr std::int64_t at_once = 2048;
  std::int64_t sum[at_once];
  std::int64_t scores[LatentRule::kMostFactors];
  for (std::int64_t row = first; row < first + count; ++row, out += stride) {
    for (std::int32_t j = 0; j < rule_.num_factors; ++j)
      scores[j] = rule_.score(row, j);
    for (std::int64_t f0 = 0; f0 < d; f0 += at_once) {
      const std::int64_t size = std::min(at_once, d - f0);
      for (std::int64_t f = 0; f < size; ++f)
        sum[f] = rule_.noise_at(row, f0 + f);
      for (std::int32_t j = 0; j < rule_.num_factors; ++j) {
        const std::int32_t* const loading = loadings_.data() + j * d + f0;
        for (std::int64_t f = 0; f < size; ++f)
          sum[f] += scores[j] * loading[f];
      }
      for (std::int64_t f = 0; f < size; ++f)
        out[f0 + f] = LatentRule::value(sum[f]);
    }
  }
}

}  // namespace fsknn
