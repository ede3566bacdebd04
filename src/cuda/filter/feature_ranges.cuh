#pragma once

// Rows of very many features: tensor cores add one range of features at a time.
// A thread's sums of the previous ranges wait in device memory, because its
// registers are full.

#include <cstdint>

#include "cuda/filter/half_tile.hpp"

namespace fsknn {
namespace cuda {

/// The sums of one thread. `Pairs` has 128 of them.
class FeatureRangeSums {
 public:
  static constexpr int threads = 256;  ///< of a block, which have sums
  static constexpr int pieces = 32;    ///< of a thread, 4 sums each
  static_assert(threads * pieces * static_cast<int>(sizeof(float4)) ==
                    kFeatureRangeBytes,
                "the plan knows how much this takes");

  __device__ explicit FeatureRangeSums(const HalfWork& work)
      : own_(work.feature_range_sums +
             static_cast<std::int64_t>(blockIdx.x) * (threads * pieces) +
             threadIdx.x) {}

  /// Returns whether the sums join the previous ones after this part.
  __device__ static bool ends_at(int part, int parts) {
    return (part + 1) % FilterTile::feature_range_parts == 0 &&
           part + 1 < parts;
  }
  __device__ static bool begins_at(int part) {
    return part % FilterTile::feature_range_parts == 0;
  }

  template <class Pairs>
  __device__ void put(const Pairs& pairs, int part) {
    const bool first = part < FilterTile::feature_range_parts;
#pragma unroll
    for (int q = 0; q < pieces; ++q) {
      float4& before = own_[q * threads];
      const float4 now = {pairs.sum(4 * q), pairs.sum(4 * q + 1),
                          pairs.sum(4 * q + 2), pairs.sum(4 * q + 3)};
      before = first ? now : added(before, now);
    }
  }

  /// Adds the previous ranges' sums to `pairs`, which has the last one's.
  template <class Pairs>
  __device__ void add_to(Pairs& pairs) const {
#pragma unroll
    for (int q = 0; q < pieces; ++q) {
      const float4 before = own_[q * threads];
      pairs.sum(4 * q) += before.x;
      pairs.sum(4 * q + 1) += before.y;
      pairs.sum(4 * q + 2) += before.z;
      pairs.sum(4 * q + 3) += before.w;
    }
  }

 private:
  __device__ static float4 added(const float4& a, const float4& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }
  float4* own_;
};

}  // namespace cuda
}  // namespace fsknn
