#include "cuda/search/tile_tree.hpp"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/device/warps.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kWidest = static_cast<int>(kMostTreeFeatures);
// The most points of a node that choose its feature.
constexpr std::int32_t kNodeSample = 512;
constexpr int kSampledRows = 64;

unsigned grid_of(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

/// How a node is divided: by x[feature], as a whole number that grows with it.
struct NodeSplit {
  int feature;
  float low, scale;
  double centre;
};

// Chooses each node's feature, the one that varies most in a sample of its
// points. Any choice is right. order: places; first: [nodes + 1] positions in
// it. ranked: [width] the features of the only node, those that vary most
// first; or null. Grid: x over nodes. Block: kThreads. Shared: 16 KB, static.
__global__ void choose_features(const PreparedRows rows, const int width,
                                const std::int32_t* order,
                                const std::int32_t* first, NodeSplit* splits,
                                std::int32_t* ranked) {
  __shared__ float sum[kWarps][kWidest], square[kWarps][kWidest];
  __shared__ float low[kWarps][kWidest], high[kWarps][kWidest];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::int32_t begin = first[blockIdx.x];
  const std::int32_t size = first[blockIdx.x + 1] - begin;
  const std::int32_t count = min(size, kNodeSample);
  const auto row_at = [&](std::int32_t i) {
    const std::int64_t at = begin + static_cast<std::int64_t>(i) * size / count;
    return rows.rows + order[at] * rows.padded;
  };
  const double* const centre = row_at(0);
  for (int f = lane; f < width; f += kWarp) {
    float s = 0.0f, sq = 0.0f, least = HUGE_VALF, most = -HUGE_VALF;
    for (std::int32_t i = warp; i < count; i += kWarps) {
      const float x = static_cast<float>(row_at(i)[f] - centre[f]);
      s += x;
      sq += x * x;
      least = fminf(least, x);
      most = fmaxf(most, x);
    }
    sum[warp][f] = s;
    square[warp][f] = sq;
    low[warp][f] = least;
    high[warp][f] = most;
  }
  __syncthreads();
  for (int f = static_cast<int>(threadIdx.x); f < width; f += kThreads) {
    for (int w = 1; w < kWarps; ++w) {
      sum[0][f] += sum[w][f];
      square[0][f] += square[w][f];
      low[0][f] = fminf(low[0][f], low[w][f]);
      high[0][f] = fmaxf(high[0][f], high[w][f]);
    }
    square[0][f] -= sum[0][f] * sum[0][f] / static_cast<float>(count);
  }
  __syncthreads();
  if (ranked != nullptr) {
    // NaN comes last.
    const auto variance = [&](int f) { return fmaxf(square[0][f], -1.0f); };
    for (int f = static_cast<int>(threadIdx.x); f < width; f += kThreads) {
      int before = 0;
      for (int g = 0; g < width; ++g)
        before +=
            variance(g) > variance(f) || (variance(g) == variance(f) && g < f);
      ranked[before] = f;
    }
  }
  if (threadIdx.x > 0) return;
  int best = 0;
  for (int f = 1; f < width; ++f)
    if (square[0][f] > square[0][best]) best = f;
  splits[blockIdx.x] = {best, low[0][best],
                        1.0f / (high[0][best] - low[0][best]), centre[best]};
}

// Makes the keys that sort the points of each node by its feature. most: the
// largest number of a feature's value; the node's number is above. Grid: x over
// points. Block: kThreads. Shared: none.
__global__ void make_keys(const PreparedRows rows, const std::int32_t* order,
                          const std::int32_t num_points,
                          const std::int32_t* first, const int num_nodes,
                          const NodeSplit* splits, const unsigned most,
                          unsigned* keys) {
  const std::int32_t at =
      static_cast<std::int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (at >= num_points) return;
  int node = 0, end = num_nodes;
  while (end - node > 1) {
    const int middle = (node + end) / 2;
    if (first[middle] <= at)
      node = middle;
    else
      end = middle;
  }
  const NodeSplit split = splits[node];
  const double x = rows.rows[order[at] * rows.padded + split.feature];
  const float part =
      (static_cast<float>(x - split.centre) - split.low) * split.scale;
  // NaN becomes 0.
  const unsigned value =
      part > 0.0f ? min(most, static_cast<unsigned>(fminf(part, 1.0f) *
                                                    static_cast<float>(most)))
                  : 0u;
  keys[at] = static_cast<unsigned>(node) * (most + 1) + value;
}

// Numbers 0, 1, .. Grid: x over them. Block: kThreads. Shared: none.
__global__ void count_up(std::int32_t* to, const std::int32_t count) {
  const std::int32_t at =
      static_cast<std::int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (at < count) to[at] = at;
}

// Makes the box of each block. first: [blocks + 1] positions in `order`. Both
// roundings are directed, so that the box holds the real differences. Grid: x
// over blocks. Block: kThreads. Shared: 8 KB, static.
__global__ void make_boxes(const PreparedRows rows, const int width,
                           const std::int32_t* order, const std::int32_t* first,
                           const std::int32_t* features,
                           const std::int64_t num_blocks, float* least,
                           float* most, float2* by_block) {
  __shared__ float low[kWarps][kWidest], high[kWarps][kWidest];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int f = lane; f < width; f += kWarp) {
    const std::int32_t feature = features[f];
    const double centre = rows.rows[feature];
    float own_low = HUGE_VALF, own_high = -HUGE_VALF;
    for (std::int32_t at = first[blockIdx.x] + warp; at < first[blockIdx.x + 1];
         at += kWarps) {
      const double x = rows.rows[order[at] * rows.padded + feature];
      own_low = fminf(own_low, __double2float_rd(__dsub_rd(x, centre)));
      own_high = fmaxf(own_high, __double2float_ru(__dsub_ru(x, centre)));
    }
    low[warp][f] = own_low;
    high[warp][f] = own_high;
  }
  __syncthreads();
  for (int f = static_cast<int>(threadIdx.x); f < max(width, kBoxFeatures);
       f += kThreads) {
    float2 sides = {0.0f, 0.0f};
    if (f < width) {
      sides = {low[0][f], high[0][f]};
      for (int w = 1; w < kWarps; ++w) {
        sides.x = fminf(sides.x, low[w][f]);
        sides.y = fmaxf(sides.y, high[w][f]);
      }
      least[f * num_blocks + blockIdx.x] = sides.x;
      most[f * num_blocks + blockIdx.x] = sides.y;
    }
    if (f < kBoxFeatures)
      by_block[static_cast<std::int64_t>(blockIdx.x) * kBoxFeatures + f] =
          sides;
  }
}

// Computes squared distances of the first rows to all points. Grid: x over
// points. Block: kThreads. Shared: width x kSampledRows floats, dynamic.
__global__ void sample_distances(const PreparedRows rows, const int width,
                                 const std::int32_t num_points,
                                 float* distances) {
  extern __shared__ float sampled[];
  for (int i = static_cast<int>(threadIdx.x); i < width * kSampledRows;
       i += kThreads) {
    const int row = i % kSampledRows, f = i / kSampledRows;
    sampled[i] =
        static_cast<float>(rows.rows[row * rows.padded + f] - rows.rows[f]);
  }
  __syncthreads();
  const std::int32_t at =
      static_cast<std::int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (at >= num_points) return;
  float sum[kSampledRows] = {};
  for (int f = 0; f < width; ++f) {
    const float x =
        static_cast<float>(rows.rows[at * rows.padded + f] - rows.rows[f]);
#pragma unroll
    for (int row = 0; row < kSampledRows; ++row) {
      const float difference = x - sampled[f * kSampledRows + row];
      sum[row] += difference * difference;
    }
  }
#pragma unroll
  for (int row = 0; row < kSampledRows; ++row)
    distances[static_cast<std::int64_t>(row) * num_points + at] = sum[row];
}

// Counts the blocks whose boxes a row's k-th distance reaches. rank: of the
// k-th, the row itself among them. Grid: x over sampled rows. Block: kThreads.
// Shared: 520 bytes, static.
__global__ void count_reached(const PreparedRows rows, const TileBoxes boxes,
                              const float* distances,
                              const std::int32_t num_points, const int rank,
                              int* reached) {
  __shared__ float own[kWidest];
  __shared__ int count;
  const float* const of_row =
      distances + static_cast<std::int64_t>(blockIdx.x) * num_points;
  for (int f = static_cast<int>(threadIdx.x); f < boxes.width; f += kThreads) {
    const std::int32_t feature = boxes.features[f];
    own[f] = static_cast<float>(rows.rows[blockIdx.x * rows.padded + feature] -
                                rows.rows[feature]);
  }
  // Squares are not negative: their bits are in their order.
  unsigned limit = 0;
  for (int bit = 30; bit >= 0; --bit) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const unsigned tried = limit | 1u << bit;
    int below = 0;
    for (std::int32_t at = static_cast<std::int32_t>(threadIdx.x);
         at < num_points; at += kThreads)
      below += __float_as_uint(of_row[at]) < tried;
    const int of_warp = static_cast<int>(warp_sum(below));
    if (threadIdx.x % kWarp == 0) atomicAdd(&count, of_warp);
    __syncthreads();
    if (count < rank) limit = tried;
    __syncthreads();
  }
  const float reach = __uint_as_float(limit);
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int mine = 0;
  for (std::int64_t b = threadIdx.x; b < boxes.num_blocks; b += kThreads) {
    float sum = 0.0f;
    for (int f = 0; f < boxes.width && sum <= reach; ++f) {
      const std::int64_t at = f * boxes.num_blocks + b;
      const float gap =
          fmaxf(0.0f, fmaxf(boxes.least[at] - own[f], own[f] - boxes.most[at]));
      sum += gap * gap;
    }
    mine += sum <= reach;
  }
  mine = static_cast<int>(warp_sum(mine));
  if (threadIdx.x % kWarp == 0) atomicAdd(reached, mine);
}

/// Uploads the first position of each node.
void upload_firsts(const FilterBlocks& blocks,
                   const std::vector<std::int32_t>& nodes,
                   std::vector<std::int32_t>& firsts,
                   DeviceBuffer<std::int32_t>& to, const Stream& stream) {
  firsts.clear();
  for (const std::int32_t block : nodes)
    firsts.push_back(
        static_cast<std::int32_t>(blocks.first_place(block).value));
  upload(to, firsts.data(), static_cast<std::int64_t>(firsts.size()), stream);
  stream.wait();
}

}  // namespace

TileTree::TileTree(const PreparedRows& rows, std::int64_t num_points,
                   const Stream& stream)
    : blocks_(num_points),
      levels_(blocks_.count),
      width_(static_cast<int>(rows.padded)),
      least_(blocks_.count * rows.padded),
      most_(blocks_.count * rows.padded),
      by_block_(blocks_.count * kBoxFeatures),
      features_(rows.padded) {
  const std::int32_t n = static_cast<std::int32_t>(num_points);
  DeviceBuffer<unsigned> keys[2] = {DeviceBuffer<unsigned>(n),
                                    DeviceBuffer<unsigned>(n)};
  DeviceBuffer<std::int32_t> order[2] = {DeviceBuffer<std::int32_t>(n),
                                         DeviceBuffer<std::int32_t>(n)};
  DeviceBuffer<std::int32_t> first(blocks_.count + 1);
  DeviceBuffer<NodeSplit> splits(blocks_.count);
  cub::DoubleBuffer<unsigned> sorted_keys(keys[0].data(), keys[1].data());
  cub::DoubleBuffer<std::int32_t> sorted(order[0].data(), order[1].data());
  std::size_t bytes = 0;
  CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, sorted_keys,
                                             sorted, n, 0, 32, stream.get()));
  DeviceBuffer<unsigned char> scratch(static_cast<std::int64_t>(bytes));
  const WaitAtEnd wait(stream);
  count_up<<<grid_of(n, kThreads), kThreads, 0, stream.get()>>>(
      sorted.Current(), n);
  CUDA_CHECK(cudaGetLastError());
  // Without levels any order of features will do.
  count_up<<<grid_of(width_, kThreads), kThreads, 0, stream.get()>>>(
      features_.data(), width_);
  CUDA_CHECK(cudaGetLastError());
  std::vector<std::int32_t> firsts;
  for (int level = 0; level + 1 < levels_.count(); ++level) {
    const std::vector<std::int32_t>& nodes = levels_.level(level);
    const unsigned num_nodes = static_cast<unsigned>(nodes.size() - 1);
    upload_firsts(blocks_, nodes, firsts, first, stream);
    int node_bits = 0;
    while (num_nodes > 1u << node_bits) ++node_bits;
    const int value_bits = std::min(16, 32 - node_bits);
    choose_features<<<num_nodes, kThreads, 0, stream.get()>>>(
        rows, width_, sorted.Current(), first.data(), splits.data(),
        level == 0 ? features_.data() : nullptr);
    CUDA_CHECK(cudaGetLastError());
    make_keys<<<grid_of(n, kThreads), kThreads, 0, stream.get()>>>(
        rows, sorted.Current(), n, first.data(), static_cast<int>(num_nodes),
        splits.data(), (1u << value_bits) - 1, sorted_keys.Current());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
        scratch.data(), bytes, sorted_keys, sorted, n, 0,
        node_bits + value_bits, stream.get()));
  }
  upload_firsts(blocks_, levels_.level(levels_.count() - 1), firsts, first,
                stream);
  make_boxes<<<static_cast<unsigned>(blocks_.count), kThreads, 0,
               stream.get()>>>(rows, width_, sorted.Current(), first.data(),
                               features_.data(), blocks_.count, least_.data(),
                               most_.data(), by_block_.data());
  CUDA_CHECK(cudaGetLastError());
  const std::vector<std::int32_t> places =
      downloaded(sorted.Current(), n, stream);
  places_ = blocks_.places();
  for (std::int32_t& place : places_)
    if (place >= 0) place = places[static_cast<std::size_t>(place)];
}

double share_by_tree(const PreparedRows& rows, std::int64_t num_points,
                     std::int64_t k, const Stream& stream) {
  const std::int64_t count = std::min(num_points, kTreeSample);
  if (count < 2 * kSampledRows || k + 1 >= count) return 1.0;
  const TileTree tree(rows, count, stream);
  const TileBoxes boxes = tree.boxes();
  DeviceBuffer<float> distances(count * kSampledRows);
  DeviceBuffer<int> reached(1);
  const WaitAtEnd wait(stream);
  clear_from(reached, 0, stream);
  sample_distances<<<grid_of(count, kThreads), kThreads,
                     static_cast<unsigned>(boxes.width * kSampledRows) *
                         sizeof(float),
                     stream.get()>>>(
      rows, boxes.width, static_cast<std::int32_t>(count), distances.data());
  CUDA_CHECK(cudaGetLastError());
  count_reached<<<kSampledRows, kThreads, 0, stream.get()>>>(
      rows, boxes, distances.data(), static_cast<std::int32_t>(count),
      static_cast<int>(k + 1), reached.data());
  CUDA_CHECK(cudaGetLastError());
  return static_cast<double>(downloaded(reached.data(), stream)) /
         static_cast<double>(boxes.num_blocks * kSampledRows);
}

}  // namespace cuda
}  // namespace fsknn
