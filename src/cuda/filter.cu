#include "cuda/filter.cuh"

#include "cuda/check.cuh"
#include "cuda/resources.cuh"
#include "cuda/transfer.cuh"
#include "cuda/wgmma.cuh"

namespace fsknn {
namespace cuda {
namespace {

using T = FilterTile;

static_assert(T::depth * 2 == 128, "a staged row is 8 pieces of 16 bytes");

/// Some jobs of one round.
struct HalfWork {
  HalfRows rows, columns;
  CandidateLists lists;
  FilterJobs jobs;
};

/// A pair for `row`'s list.
struct Found {
  std::int32_t row, column;
  float similarity;
};
constexpr int kQueueLength = 128;
constexpr int kQueueBytes =
    T::threads / 32 * kQueueLength * static_cast<int>(sizeof(Found));

// The machine's instructions; below 8.0 there are none, and the plan sees to it
// that the kernel is not started.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ inline void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to),
               "l"(from));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::);
}
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending));
}
template <Sign sign>
__device__ inline float similarity(float r) {
  if (sign == Sign::absolute) return fabsf(r);
  return sign == Sign::negative ? -r : r;
}

/// Stages the features of a job's tiles, one after the other, as far ahead as
/// there are stages. A staged row's 16-byte pieces are permuted (piece c of row
/// r at c ^ (r & 7)), so that reads of 8 rows' same piece meet 32 banks.
class Stager {
 public:
  __device__ Stager(const HalfWork& work, std::int64_t row_slot,
                    std::int64_t column_block, std::int64_t num_tiles,
                    unsigned shared)
      : depth_(work.rows.depth),
        num_blocks_(work.jobs.num_blocks),
        column_block_(column_block),
        tiles_left_(num_tiles) {
    const int row = static_cast<int>(threadIdx.x) / 8;
    const int piece = static_cast<int>(threadIdx.x) % 8;
    shared_ = shared + row * 128 + ((piece ^ (row & 7)) << 4);
    offset_ = row * depth_ + piece * 8;
    points_ = work.columns.rows;
    rows_ = work.rows.rows + row_slot * depth_ + offset_;
    start_tile();
  }

  /// The next `depth` features into this stage, if there are any left.
  __device__ void stage(int stage) {
    if (tiles_left_ == 0) return;
    constexpr int rows_at_a_time = T::threads / 8;
    const unsigned to = shared_ + stage * T::stage_bytes;
#pragma unroll
    for (int q = 0; q < T::rows / rows_at_a_time; ++q)
      copy_16_bytes(to + q * rows_at_a_time * 128,
                    rows_ + feature_ + q * rows_at_a_time * depth_);
#pragma unroll
    for (int q = 0; q < T::columns / rows_at_a_time; ++q)
      copy_16_bytes(to + (T::rows + q * rows_at_a_time) * 128,
                    columns_ + feature_ + q * rows_at_a_time * depth_);
    feature_ += T::depth;
    if (feature_ < depth_) return;
    --tiles_left_;
    column_block_ = column_block_ + 1 == num_blocks_ ? 0 : column_block_ + 1;
    start_tile();
  }

 private:
  __device__ void start_tile() {
    feature_ = 0;
    columns_ = points_ + column_block_ * T::columns * depth_ + offset_;
  }

  std::int64_t depth_, num_blocks_, column_block_, tiles_left_;
  std::int64_t offset_, feature_;
  const __half *points_, *rows_, *columns_;
  unsigned shared_;
};

/// A thread's share of a tile: sums in `groups` groups of 16 values. Value `at`
/// of a group is of the thread's row number row_of(at) (the first, and every 8
/// from there) and of column column_of(at) from the group's first.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Two warpgroups, each 64 rows by all columns.
class ThreadPairs {
 public:
  static constexpr int rows = 2, groups = 8;
  static constexpr int column_pairs = 4;  ///< a group's, every 8 columns
  static constexpr int group_columns = 8 * column_pairs;

  __device__ ThreadPairs(int warp, int lane)
      : first_row(warp * 16 + lane / 4), first_column(lane % 4 * 2) {
    half_ = warp / 4 * 64 * 128;
  }
  __device__ static constexpr int row_of(int at) { return at / 2 % 2; }
  __device__ static constexpr int column_of(int at) {
    return at / 4 * 8 + at % 2;
  }
  __device__ float value(int group, int at) const { return sum_[group * 16 + at]; }

  /// Before the barrier after which a stage is read.
  __device__ static void before_barrier() { show_copies_to_products(); }
  /// Starts a stage's products, and waits for those of the stage before.
  __device__ void multiply(unsigned staged, bool first) {
    begin_products();
#pragma unroll
    for (int step = 0; step < T::depth / 16; ++step)
      add_warpgroup_products(sum_, tile_descriptor(staged + half_ + 32 * step),
                             tile_descriptor(staged + T::rows * 128 + 32 * step),
                             first && step == 0 ? 0 : 1);
    end_products();
    wait_for_products<1>();
  }
  __device__ static void finish() { wait_for_products<0>(); }
  /// Stages that are read while one is written.
  static constexpr int stages_read = 2;

  const int first_row, first_column;

 private:
  float sum_[128];
  unsigned half_;
};

#else

/// Four 8 x 8 tiles of halves, as the products take them.
__device__ inline void load_tiles(unsigned (&to)[4], unsigned from) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(from));
}
__device__ inline void add_products(float (&sum)[4], const unsigned (&a)[4],
                                    unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Eight warps, each 64 x 64 pairs, as products of 16 x 8 pairs and 16 features.
struct WarpTile {
  static constexpr int rows = 64, columns = 64;
  static constexpr int down = T::rows / rows;
  static constexpr int products_down = rows / 16, products_across = columns / 8;
  static constexpr int steps = T::depth / 16;
};
static_assert(T::threads == 32 * WarpTile::down * (T::columns / WarpTile::columns),
              "the warps' tiles make up the block's");
class ThreadPairs {
 public:
  static constexpr int rows = 2 * WarpTile::products_down;
  static constexpr int groups = WarpTile::products_across;
  static constexpr int column_pairs = 1, group_columns = 8;

  __device__ ThreadPairs(int warp, int lane)
      : first_row(warp % WarpTile::down * WarpTile::rows + lane / 4),
        first_column(warp / WarpTile::down * WarpTile::columns + lane % 4 * 2),
        warp_row_(warp % WarpTile::down * WarpTile::rows),
        warp_column_(warp / WarpTile::down * WarpTile::columns),
        lane_(lane) {}
  __device__ static constexpr int row_of(int at) { return at / 2; }
  __device__ static constexpr int column_of(int at) { return at % 2; }
  __device__ float value(int group, int at) const {
    return sum_[at / 4][group][at % 4];
  }

  __device__ static void before_barrier() {}
  __device__ void multiply(unsigned staged, bool first) {
    if (first) clear();
    using W = WarpTile;
    const int row = warp_row_ + (lane_ & 15);
    const int column = T::rows + warp_column_ + (lane_ & 7) + (lane_ >> 4) * 8;
#pragma unroll
    for (int step = 0; step < W::steps; ++step) {
      unsigned a[W::products_down][4], b[W::products_across / 2][4];
      const int row_piece = (2 * step + (lane_ >> 4)) ^ (row & 7);
      const int column_piece = (2 * step + ((lane_ >> 3) & 1)) ^ (column & 7);
#pragma unroll
      for (int i = 0; i < W::products_down; ++i)
        load_tiles(a[i], staged + (row + 16 * i) * 128 + row_piece * 16);
#pragma unroll
      for (int j = 0; j < W::products_across / 2; ++j)
        load_tiles(b[j], staged + (column + 16 * j) * 128 + column_piece * 16);
#pragma unroll
      for (int i = 0; i < W::products_down; ++i)
#pragma unroll
        for (int j = 0; j < W::products_across; ++j)
          add_products(sum_[i][j], a[i], b[j / 2][j % 2 * 2],
                       b[j / 2][j % 2 * 2 + 1]);
    }
  }
  __device__ static void finish() {}
  static constexpr int stages_read = 1;

  const int first_row, first_column;

 private:
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < WarpTile::products_down; ++i)
#pragma unroll
      for (int j = 0; j < WarpTile::products_across; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) sum_[i][j][v] = 0.0f;
  }
  float sum_[WarpTile::products_down][WarpTile::products_across][4];
  int warp_row_, warp_column_, lane_;
};

#endif

/// What a warp found, on its way to the lists. A place in a list takes an atomic
/// addition, whose answer is a microsecond away: they are asked for by all lanes
/// at once, and seldom. All threads of the warp must call every member.
class WarpQueue {
 public:
  __device__ WarpQueue(Found* entries, int lane)
      : entries_(entries), lane_(lane) {}

  __device__ void push(const CandidateLists& lists, bool here,
                       const Found& entry) {
    const unsigned lanes = __ballot_sync(0xffffffffu, here);
    if (here) entries_[count_ + __popc(lanes & ((1u << lane_) - 1))] = entry;
    count_ += __popc(lanes);
    if (count_ > kQueueLength - 32) flush(lists);
  }

  __device__ void flush(const CandidateLists& lists) {
    __syncwarp();
    for (int i = lane_; i < count_; i += 32) {
      const Found entry = entries_[i];
      const std::int32_t at = atomicAdd(lists.counts + entry.row, 1);
      if (at < lists.capacity)
        lists.entries[static_cast<std::int64_t>(entry.row) * lists.capacity +
                      at] = {entry.similarity, entry.column};
    }
    __syncwarp();
    count_ = 0;
  }

 private:
  Found* entries_;
  int lane_;
  int count_ = 0;
};
#endif

// Similarities of pairs by tensor cores (ThreadPairs), and what reaches a row's or
// a column's threshold into its list. Half of the pairs of blocks, each for its
// rows and its columns (CoMet's circulant order, Joubert et al. 2018).
// In and out: see HalfWork. Grid: any, blocks take jobs in turn. Block:
// FilterTile::threads. Shared: num_stages x FilterTile::stage_bytes and
// kQueueBytes, dynamic.
template <Sign sign>
__global__ void __launch_bounds__(T::threads, 1)
    filter_pairs(const HalfWork work, const int num_stages) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using P = ThreadPairs;
  extern __shared__ __align__(1024) unsigned char stages[];
  const unsigned shared = shared_address(stages);
  const CandidateLists& lists = work.lists;
  const FilterJobs& jobs = work.jobs;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  WarpQueue queue(
      reinterpret_cast<Found*>(stages + num_stages * T::stage_bytes) +
          warp * kQueueLength,
      lane);
  const int stages_a_tile = static_cast<int>(work.rows.depth / T::depth);
  const int ahead = num_stages - P::stages_read;  // stages on their way
  P pairs(warp, lane);

  for (std::int64_t job = jobs.first_job + blockIdx.x; job < jobs.end_job;
       job += gridDim.x) {
    const std::int64_t slab = jobs.first_slab + job % jobs.num_slabs;
    const std::int64_t first =
        jobs.first_delta + job / jobs.num_slabs * jobs.span;
    const std::int64_t end = min(first + jobs.span, jobs.end_delta);
    std::int64_t column_block = slab / T::slabs + first;
    if (column_block >= jobs.num_blocks) column_block -= jobs.num_blocks;

    __syncthreads();  // the last job's stages are read
    Stager stager(work, slab * T::rows, column_block, end - first, shared);
    for (int s = 0; s < ahead; ++s) {
      stager.stage(s);
      commit_copies();
    }
    int now = 0;

    const std::int32_t row0 =
        static_cast<std::int32_t>(slab * T::rows) + pairs.first_row;
    float row_threshold[P::rows];
#pragma unroll
    for (int i = 0; i < P::rows; ++i)
      row_threshold[i] = __ldg(lists.thresholds + row0 + 8 * i);

    for (std::int64_t delta = first; delta < end; ++delta) {
#pragma unroll 1
      for (int part = 0; part < stages_a_tile; ++part) {
        if (ahead == 3)
          wait_for_copies<2>();
        else if (ahead == 2)
          wait_for_copies<1>();
        else
          wait_for_copies<0>();
        P::before_barrier();
        __syncthreads();
        // A stage that all were done with before the barrier.
        const int next = now + ahead;
        stager.stage(next < num_stages ? next : next - num_stages);
        commit_copies();
        pairs.multiply(shared + now * T::stage_bytes, part == 0);
        now = now + 1 == num_stages ? 0 : now + 1;
      }
      P::finish();

      const std::int32_t column0 =
          static_cast<std::int32_t>(column_block * T::columns) +
          pairs.first_column;
      column_block = column_block + 1 == jobs.num_blocks ? 0 : column_block + 1;
      if (jobs.fill) {
        // The first round: every pair of the row with its own block.
#pragma unroll
        for (int g = 0; g < P::groups; ++g)
#pragma unroll
          for (int at = 0; at < 16; ++at) {
            const int across = g * P::group_columns + P::column_of(at);
            lists.entries[static_cast<std::int64_t>(row0 + 8 * P::row_of(at)) *
                              lists.capacity +
                          pairs.first_column + across] = {
                similarity<sign>(pairs.value(g, at)), column0 + across};
          }
        continue;
      }
      // Loaded some groups at once: one wait for all.
      constexpr int groups_loaded = 8 / P::column_pairs;
      float2 column_threshold[groups_loaded][P::column_pairs];
#pragma unroll
      for (int g = 0; g < P::groups; ++g) {
        if (g % groups_loaded == 0) {
#pragma unroll
          for (int q = 0; q < groups_loaded; ++q)
#pragma unroll
            for (int p = 0; p < P::column_pairs; ++p)
              column_threshold[q][p] = __ldg(reinterpret_cast<const float2*>(
                  lists.thresholds + column0 + (g + q) * P::group_columns +
                  8 * p));
        }
        const float2(&column)[P::column_pairs] =
            column_threshold[g % groups_loaded];
        bool any = false;
#pragma unroll
        for (int at = 0; at < 16; ++at) {
          const float2 two = column[P::column_of(at) / 8];
          any |= similarity<sign>(pairs.value(g, at)) >=
                 fminf(row_threshold[P::row_of(at)], at % 2 == 0 ? two.x : two.y);
        }
        if (!__any_sync(0xffffffffu, any)) continue;
        // Rare, so little code rather than fast code: what reaches a threshold
        // is found first, then taken one by one. Bit `at` is for the row, the
        // same and 16 for the column. A threshold that is no number is padding's.
        float s[16];
        unsigned left = 0;
#pragma unroll
        for (int at = 0; at < 16; ++at) {
          const float2 two = column[P::column_of(at) / 8];
          const float for_row = row_threshold[P::row_of(at)];
          const float for_column = at % 2 == 0 ? two.x : two.y;
          s[at] = similarity<sign>(pairs.value(g, at));
          if (s[at] >= for_row && for_column == for_column) left |= 1u << at;
          if (s[at] >= for_column && for_row == for_row) left |= 0x10000u << at;
        }
#pragma unroll 1
        while (__any_sync(0xffffffffu, left != 0)) {
          const bool here = left != 0;
          const int bit = here ? __ffs(static_cast<int>(left)) - 1 : 0;
          left &= left - 1;
          const int at = bit % 16;
          const std::int32_t r = row0 + 8 * P::row_of(at);
          const std::int32_t c =
              column0 + g * P::group_columns + P::column_of(at);
          queue.push(lists, here,
                     {bit < 16 ? r : c, bit < 16 ? c : r, s[at]});
        }
      }
    }
    queue.flush(lists);
    wait_for_copies<0>();
  }
#endif
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

template <Sign sign>
void start_filter_of(const HalfWork& work, cudaStream_t stream) {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const int room = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int fit = (room - kQueueBytes) / T::stage_bytes;
  const int stages = fit < T::most_stages ? fit : T::most_stages;
  const int bytes = stages * T::stage_bytes + kQueueBytes;
  CUDA_CHECK(cudaFuncSetAttribute(
      filter_pairs<sign>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t num_jobs = work.jobs.end_job - work.jobs.first_job;
  const int most = attribute(cudaDevAttrMultiProcessorCount, device);
  const int grid = num_jobs < most ? static_cast<int>(num_jobs) : most;
  filter_pairs<sign><<<grid, T::threads, bytes, stream>>>(work, stages);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

bool has_half_products(int device) {
  return attribute(cudaDevAttrComputeCapabilityMajor, device) >= 8 &&
         attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device) >=
             2 * T::stage_bytes + kQueueBytes;
}

namespace {

void start_half_filter(const MetricEntry& metric, const HalfWork& work,
                       cudaStream_t stream) {
  switch (metric.sign) {
    case Sign::absolute:
      return start_filter_of<Sign::absolute>(work, stream);
    case Sign::negative:
      return start_filter_of<Sign::negative>(work, stream);
    default: return start_filter_of<Sign::signed_value>(work, stream);
  }
}

class HalfFilter final : public PairFilter {
 public:
  HalfFilter(const MetricEntry& metric, std::int64_t num_features)
      : metric_(metric),
        depth_(filter_depth(num_features)),
        padded_(padded_features(num_features)),
        errors_(2) {
    CUDA_CHECK(cudaMemset(errors_.data(), 0, 2 * sizeof(double)));
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
  }
  std::int64_t row_bytes() const override {
    return depth_ * static_cast<std::int64_t>(sizeof(__half));
  }
  std::int64_t floats_a_slot() const override { return 0; }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    start_half_rows(from, count, slots, halves(to),
                    {errors_.data(), errors_.data() + 1}, stream);
  }
  void set_errors(Cut& cut, const FilterRows&, const FilterRows&,
                  const Stream& stream) override {
    double errors[2];
    download(errors, errors_, 2, stream);
    stream.wait();
    cut.twice_error = 2.0 * kSimilarityScale *
                      filter_error(errors[0], errors[1], depth_, padded_);
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    start_half_filter(metric_,
                      {halves(work.rows), halves(work.columns), work.lists,
                       work.jobs},
                      stream);
  }

 private:
  HalfRows halves(const FilterRows& rows) const {
    return {static_cast<__half*>(rows.rows), depth_};
  }
  const MetricEntry& metric_;
  std::int64_t depth_, padded_;
  DeviceBuffer<double> errors_;
};

}  // namespace

std::unique_ptr<PairFilter> make_half_filter(const MetricEntry& metric,
                                             std::int64_t num_features) {
  return std::unique_ptr<PairFilter>(new HalfFilter(metric, num_features));
}

}  // namespace cuda
}  // namespace fsknn
