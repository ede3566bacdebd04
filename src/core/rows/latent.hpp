#pragma once

// Rows of latent factors: row i is sum_j score(i, j) loading(j, .) + noise.
// They have the structure of real data at any size: a few directions explain
// most of it, and near neighbours are nearer than others. They are computed
// when and where they are read, for searches that exceed memory and disk.
//
// Every value is a whole number below 2^53, times a power of two, so that host,
// device and any other implementation compute the same bits.

#include <cstdint>
#include <vector>

#include "core/contract/scaling.hpp"
#include "core/rows/made_rows.hpp"
#include "core/rows/split_mix.hpp"

namespace fsknn {

/// Approximately normal with mean 0: the sum of four 16-bit whole numbers
/// (Irwin-Hall), minus its mean. The range is -131,070 to 131,070; the standard
/// deviation is 37,837.2.
FSKNN_HD static inline std::int32_t near_normal(std::uint64_t key,
                                                std::uint64_t counter) {
  const std::uint64_t z = mixed_number(key, counter);
  const std::uint32_t low = static_cast<std::uint32_t>(z);
  const std::uint32_t high = static_cast<std::uint32_t>(z >> 32);
  return static_cast<std::int32_t>((low & 0xffffu) + (low >> 16) +
                                   (high & 0xffffu) + (high >> 16)) -
         131070;
}

/// The parameters of the values. A plain struct, so that a kernel can take it.
struct LatentRule {
  static constexpr std::int32_t kMostFactors = 256;
  static constexpr std::int32_t kMostNoise = 0x7fffffff;

  std::int64_t num_features = 0;
  std::int32_t num_factors = 0;  ///< 1 .. kMostFactors
  std::int32_t noise = 0;        ///< factor of the noise in each value
  std::uint64_t seed = 0;

  FSKNN_HD std::int32_t score(std::int64_t row, std::int32_t factor) const {
    return near_normal(mixed_number(seed, 0),
                       static_cast<std::uint64_t>(row * num_factors + factor));
  }
  FSKNN_HD std::int32_t loading(std::int32_t factor,
                                std::int64_t feature) const {
    return near_normal(
        mixed_number(seed, 1),
        static_cast<std::uint64_t>(factor * num_features + feature));
  }
  FSKNN_HD std::int64_t noise_at(std::int64_t row, std::int64_t feature) const {
    return static_cast<std::int64_t>(noise) *
           near_normal(
               mixed_number(seed, 2),
               static_cast<std::uint64_t>(row * num_features + feature));
  }
  /// sum: the sum of score times loading over the factors, plus noise_at();
  /// below 2^49.
  FSKNN_HD static double value(std::int64_t sum) {
    return static_cast<double>(sum) * 0x1p-32;
  }
};

class LatentSource final : public MadeSource {
 public:
  /// Throws std::invalid_argument if the rule or a size is invalid.
  LatentSource(const LatentRule& rule, std::int64_t num_points);

  std::int64_t num_points() const override { return num_points_; }
  std::int64_t num_features() const override { return rule_.num_features; }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;
  double bytes_to_make() const override {
    return 4 * static_cast<double>(loadings_.size());
  }
  const std::int32_t* kept() const override { return nullptr; }

  // The inputs from which a device computes the same rows.
  const LatentRule& rule() const { return rule_; }
  /// [num_factors x num_features], row-major.
  const std::vector<std::int32_t>& loadings() const { return loadings_; }

 private:
  LatentRule rule_;
  std::int64_t num_points_;
  std::vector<std::int32_t> loadings_;
};

}  // namespace fsknn
