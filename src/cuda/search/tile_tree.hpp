#pragma once

// A balanced tree of the points that a device holds, and boxes around the
// points of each block of slots. Points that are near each other then share
// blocks, and most pairs of blocks need not be compared.

#include <cstdint>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/tile_tree.hpp"

namespace fsknn {
namespace cuda {

/// The features of a box by block.
static constexpr int kBoxFeatures = 32;

/// The boxes of blocks, device memory. For each point x of block b and each f
/// below width, least[f num_blocks + b] <= x_g - c_g <= most[..] holds for real
/// numbers, where g is features[f], and c the point at place 0.
struct TileBoxes {
  const float* least = nullptr;
  const float* most = nullptr;
  /// [num_blocks x kBoxFeatures] the same for the first features; 0 and 0 from
  /// width on.
  const float2* by_block = nullptr;
  /// [width] those that vary most come first.
  const std::int32_t* features = nullptr;
  std::int64_t num_blocks = 0;
  int width = 0;  ///< features, padded
};

class TileTree {
 public:
  /// rows: by place. May wait for the stream.
  TileTree(const PreparedRows& rows, std::int64_t num_points,
           const Stream& stream);

  const FilterBlocks& blocks() const { return blocks_; }
  const TreeLevels& levels() const { return levels_; }
  TileBoxes boxes() const {
    return {least_.data(),    most_.data(),  by_block_.data(),
            features_.data(), blocks_.count, width_};
  }
  /// The device memory that it keeps.
  double bytes() const {
    return 4.0 * static_cast<double>(least_.size() + most_.size() +
                                     2 * by_block_.size() + features_.size());
  }
  /// [num_slots()] the place of the point in each slot; -1: padding.
  const std::vector<std::int32_t>& places() const { return places_; }

 private:
  const FilterBlocks blocks_;
  const TreeLevels levels_;
  const int width_;
  DeviceBuffer<float> least_, most_;
  DeviceBuffer<float2> by_block_;
  DeviceBuffer<std::int32_t> features_;
  std::vector<std::int32_t> places_;
};

/// Estimates from a sample of the points, which must be in random order, the
/// share of blocks that a row's box test leaves. May wait for the stream.
double share_by_tree(const PreparedRows& rows, std::int64_t num_points,
                     std::int64_t k, const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
