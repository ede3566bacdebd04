// Do products of doubles on tensor cores have the contract's bits? Chunks of
// rows that are made so that 1 - r loses none of r's are made by
// exact/lane_tiles.cu and by the kernel that has no tensor cores, over and
// over: rows so short that copies are waited for, many tiles for each block,
// tiles that are not full, chunks for both sides and of rows with themselves.
// Ends with status 1 where a bit differs. Only GPUs of compute capability 9.0
// make products so.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "core/contract/arithmetic.hpp"
#include "core/contract/metrics.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/exact/lane_tiles.hpp"

namespace {

using namespace fsknn;
using namespace fsknn::cuda;

/// [num_rows x padded] of about length 1, all a little alike: r is in [1/2, 1].
std::vector<double> made_up(std::int64_t num_rows, std::int64_t d,
                            std::mt19937_64& random) {
  const std::int64_t padded = padded_features(d);
  std::normal_distribution<double> normal;
  std::vector<double> rows(static_cast<std::size_t>(num_rows * padded));
  const double unit = 1 / std::sqrt(1.4 * static_cast<double>(d));
  for (std::int64_t r = 0; r < num_rows; ++r)
    for (std::int64_t f = 0; f < d; ++f)
      rows[static_cast<std::size_t>(r * padded + f)] =
          unit * (1 + 0.3 * normal(random));
  return rows;
}

__global__ void count_differences(const double* a, const double* b,
                                  std::int64_t size, int* differ) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < size; i += step)
    if (__double_as_longlong(a[i]) != __double_as_longlong(b[i]))
      atomicAdd(differ, 1);
}

/// Two chunks' results.
struct Results {
  explicit Results(std::int64_t size) : direct(size), turned(size) {}
  DeviceBuffer<double> direct, turned;
  Chunk of(Chunk chunk) {
    chunk.distances = direct.data();
    chunk.stride = chunk.num_columns;
    chunk.turned = chunk.same ? direct.data() : turned.data();
    chunk.turned_stride = chunk.same ? chunk.num_columns : chunk.num_rows;
    return chunk;
  }
};

/// Returns whether all runs gave the same bits.
bool check(std::int64_t num_rows, std::int64_t num_columns, std::int64_t d,
           bool same, int runs, int blocks) {
  Stream stream;
  std::mt19937_64 random(static_cast<std::uint64_t>(num_rows + d));
  const std::int64_t padded = padded_features(d), all = num_rows + num_columns;
  // What is read of rows beyond the last one are zeros.
  DeviceBuffer<double> rows((all + 256) * padded), sums(all + 256);
  DeviceBuffer<int> d_differ(1);
  const std::vector<double> values = made_up(all, d, random);
  upload_padded(rows, values.data(), static_cast<std::int64_t>(values.size()),
                stream);
  clear_from(sums, 0, stream);
  clear_from(d_differ, 0, stream);
  const MetricEntry& metric = find_metric("pearson", "signed");
  Chunk chunk;
  chunk.rows = chunk.columns = rows.data();
  if (!same) chunk.columns = rows.data() + num_rows * padded;
  chunk.row_sums = chunk.column_sums = sums.data();
  chunk.num_rows = num_rows;
  chunk.num_columns = same ? num_rows : num_columns;
  chunk.padded = padded;
  chunk.same = same;
  const std::int64_t size = num_rows * chunk.num_columns;
  Results expected(size), found(size);
  clear_from(expected.turned, 0, stream);
  clear_from(found.turned, 0, stream);
  start_distances(metric, expected.of(chunk), stream.get());
  LaneTiles tiles(num_rows, chunk.num_columns, same, padded, blocks);
  for (int run = 0; run < runs; ++run) {
    clear_from(found.direct, 0, stream);
    tiles.start(metric, found.of(chunk), stream.get());
    for (const auto& which : {&Results::direct, &Results::turned})
      count_differences<<<1024, 256, 0, stream.get()>>>(
          (expected.*which).data(), (found.*which).data(), size,
          d_differ.data());
  }
  int differ = 0;
  download(&differ, d_differ, 1, stream);
  stream.wait();
  std::printf("%lld x %lld, %lld features%s: %d of %d runs' values differ\n",
              static_cast<long long>(num_rows),
              static_cast<long long>(chunk.num_columns),
              static_cast<long long>(d), same ? ", with themselves" : "",
              differ, runs);
  return differ == 0;
}

}  // namespace

int main() {
  Stream stream;
  int device = 0, blocks = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(
      cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device));
  bool right = adds_in_order(stream);
  std::printf("Sums of products in the order of features: %s\n",
              right ? "yes" : "no");
  for (const std::int64_t d : {1, 8, 77, 128, 129, 295, 1000})
    for (const bool same : {false, true}) {
      right = check(333, 130, d, same, 3, blocks) && right;
      right = check(128, 256, d, same, 3, blocks) && right;
      right = check(1, 1, d, same, 3, blocks) && right;
    }
  for (const bool same : {false, true}) {
    right = check(4096, 4096, 100, same, 200, blocks) && right;
    right = check(4096, 4096, 295, same, 400, blocks) && right;
    right = check(4096, 4096, 4096, same, 20, blocks) && right;
  }
  return right ? 0 : 1;
}
