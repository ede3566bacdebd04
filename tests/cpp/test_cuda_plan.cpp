// What of CUDA needs no device: its plan, and which GPUs a build runs on.

#include <doctest/doctest.h>

#include <algorithm>

#include "cuda/architectures.hpp"
#include "cuda/plan.hpp"

using fsknn::Plan;
using fsknn::PlanInput;
using fsknn::cuda::kChunkUnit;
using fsknn::cuda::plan_cuda;
using fsknn::cuda::ranks_at_a_time;
using fsknn::cuda::runs_on;

namespace {

PlanInput input(std::int64_t n, std::int64_t d, std::int64_t k, int devices,
                std::int64_t chunk_size = 0, std::int64_t queries = 0) {
  PlanInput in;
  in.num_points = n;
  in.num_features = d;
  in.num_queries = queries;
  in.k = k;
  in.num_workers = devices;
  in.chunk_size = chunk_size;
  return in;
}

// Every split is done by one segment, and every point stands in a chunk.
void check_sound(const Plan& p, int devices) {
  const std::int64_t rows = p.num_queries > 0 ? p.num_queries : p.num_points;
  CHECK(p.chunk_size % kChunkUnit == 0);
  CHECK(p.chunk_size > 0);
  CHECK(p.num_splits * p.chunk_size >= rows);
  CHECK((p.num_splits - 1) * p.chunk_size < rows);
  CHECK(p.padded_points >= p.num_points);
  CHECK(p.padded_points - p.num_points < p.chunk_size);
  CHECK(p.num_segments <= std::min<std::int64_t>(devices, p.num_splits));
  CHECK(p.num_segments * p.splits_per_segment >= p.num_splits);
  CHECK((p.num_segments - 1) * p.splits_per_segment < p.num_splits);
  CHECK(p.num_chunks == p.num_splits * p.chunks_per_split);
}

}  // namespace

TEST_CASE("a CUDA plan covers every point once") {
  for (const std::int64_t n : {2, 63, 64, 65, 1000, 24158, 1533876})
    for (const int devices : {1, 2, 3, 8})
      for (const std::int64_t chunk : {0, 1, 64, 1000, 4096, 1048576})
        for (const std::int64_t queries : {0, 1, 5000}) {
          const Plan p =
              plan_cuda(input(n, 295, 1, devices, chunk, queries), 80e9);
          check_sound(p, devices);
          if (chunk > 0 && chunk < n) CHECK(p.chunk_size - chunk < kChunkUnit);
        }
}

TEST_CASE("the study's matrix is dealt evenly to four GPUs") {
  const Plan p = plan_cuda(input(24158, 295, 20, 4), 80e9);
  CHECK(p.num_segments == 4);
  CHECK(p.num_splits % 4 == 0);
  CHECK(p.padded_features == 296);
}

TEST_CASE("a small matrix uses fewer GPUs") {
  CHECK(plan_cuda(input(500, 10, 5, 4), 80e9).num_segments == 1);
  CHECK(plan_cuda(input(500, 10, 5, 4, 128), 80e9).num_segments == 4);
}

TEST_CASE("an automatic chunk fits the memory that is free") {
  const PlanInput in = input(100000, 300, 50000, 1);
  const Plan roomy = plan_cuda(in, 80e9);
  const Plan tight = plan_cuda(in, 2e9);
  CHECK(roomy.bytes_peak <= 80e9);
  CHECK(tight.bytes_peak <= 2e9);
  CHECK(tight.chunk_size < roomy.chunk_size);
  check_sound(tight, 1);
  // Where nothing fits, the smallest chunk is tried.
  CHECK(plan_cuda(in, 1.0).chunk_size == kChunkUnit);
}

TEST_CASE("chunks are smaller where there are very many features") {
  CHECK(plan_cuda(input(100000, 50000, 20, 1), 0).chunk_size <
        plan_cuda(input(100000, 300, 20, 1), 0).chunk_size);
}

TEST_CASE("at least one rank and at most k go to the host at a time") {
  CHECK(ranks_at_a_time(8192, 20) == 20);
  CHECK(ranks_at_a_time(8192, 100000) < 100000);
  CHECK(ranks_at_a_time(std::int64_t{1} << 31, 7) == 1);
}

TEST_CASE("machine code runs on its major version, PTX on all later ones") {
  CHECK(runs_on("75 80 90a ptx80", 7, 5));
  CHECK(runs_on("80", 8, 6));
  CHECK_FALSE(runs_on("86", 8, 0));
  CHECK_FALSE(runs_on("75", 8, 0));
  CHECK(runs_on("90a", 9, 0));
  CHECK_FALSE(runs_on("90a", 10, 0));
  CHECK(runs_on("75 ptx75", 12, 0));
  CHECK_FALSE(runs_on("ptx120", 9, 0));
  CHECK(runs_on("100f", 10, 3));
  CHECK_FALSE(runs_on("", 9, 0));
}
