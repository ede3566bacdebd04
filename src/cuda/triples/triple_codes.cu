// Makes thermometer codes of small whole numbers, and X of the others of an
// apex in the layout of squares.
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/triples/triple_squares.cuh"

namespace fsknn {
namespace cuda {
namespace {

// One warp handles 32 features of a row. In: the points' rows. Out: to [count x
// depth], where there are features. Grid: any, x. Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    make_codes(const TriplePoints points, unsigned* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t groups = (points.padded + kWarp - 1) / kWarp;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (; i < points.count * groups; i += step) {
    const std::int64_t place = i / groups, group = i % groups;
    const std::int64_t f = group * kWarp + lane;
    const int x = f < points.padded
                      ? static_cast<int>(points.rows[place * points.padded + f])
                      : 0;
    unsigned* const words =
        to + place * (points.own_depth / 2) + group * points.bits;
    for (int t = 0; t < points.bits; ++t) {
      const unsigned word = __ballot_sync(0xffffffffu, x > t);
      if (lane == 0) words[t] = word;
    }
  }
}

/// X of the larger values.
struct LargestCodes {
  static constexpr bool apart = false, of_tables = false;
  __device__ static uint4 piece(const uint4* apex, const uint4* other,
                                std::int64_t at, bool) {
    const uint4 a = __ldg(apex + at), b = __ldg(other + at);
    return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w);
  }
};
/// X of tables of loci with one allele a sample: the products.
struct OneAllele {
  static constexpr bool apart = false, of_tables = true;
  __device__ static uint4 piece(const uint4* apex, const uint4* other,
                                std::int64_t at, bool) {
    const uint4 a = __ldg(apex + at), b = __ldg(other + at);
    return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
  }
};
/// With two alleles, word 4 t + 2 u + v of 32 features has the bits of the
/// apex's word t and the row's word u, or of the column's word v.
struct TwoAlleles {
  static constexpr bool apart = true, of_tables = true;
  __device__ static uint4 piece(const uint4* apex, const uint4* other,
                                std::int64_t at, bool is_row) {
    const auto words = [&](const uint4* of) {
      return __ldg(reinterpret_cast<const uint2*>(of) + at / 2);
    };
    const uint2 b = words(other);
    if (!is_row) return make_uint4(b.x, b.y, b.x, b.y);
    const uint2 both = words(apex);
    const unsigned a = at % 2 == 0 ? both.x : both.y;
    return make_uint4(a & b.x, a & b.x, a & b.y, a & b.y);
  }
};

// One warp handles a row of the pool; rows past the last are zeros. Grid: x
// over rows of a job, y over jobs. Block: kThreads.
template <class Codes>
__global__ void __launch_bounds__(kThreads)
    fill_code_pool(const TriplePoints points, const TripleJob* jobs,
                   const TripleLists lists, const TriplePool to) {
  const TripleJob& job = jobs[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= bit_pool_rows(job.columns, job.rows, Codes::apart)) return;
  const std::int64_t base = static_cast<std::int64_t>(job.list) * points.count;
  const std::int64_t first_row = job.row_offset - job.offset;
  const bool once_more = first_row > 0 && row >= first_row;
  std::int64_t other = once_more ? row - first_row : row;  // its number
  const bool there = other < (once_more ? job.rows : job.columns);
  if (there && once_more) other = lists.lowers[base + other];
  const std::int64_t place = there ? lists.others[base + other] : 0;
  const std::int64_t pieces = points.depth / 8;
  const std::int64_t own_pieces = points.own_depth / 8;
  const std::int64_t parts = points.depth / TripleBitBlock::depth;
  const uint4* const all = static_cast<const uint4*>(points.codes);
  uint4* const x = reinterpret_cast<uint4*>(to.x);
  int bits = 0;
  for (std::int64_t p = lane; p < pieces; p += kWarp) {
    uint4 both = make_uint4(0, 0, 0, 0);
    if (there)
      both = Codes::piece(all + job.apex * own_pieces, all + place * own_pieces,
                          p, once_more);
    bits +=
        (__popc(both.x) + __popc(both.y)) + (__popc(both.z) + __popc(both.w));
    x[CodeTiles::at(job.offset + row, p, parts)] = both;
  }
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    bits += __shfl_xor_sync(0xffffffffu, bits, gap);
  if (lane > 0) return;
  to.places[job.offset + row] = static_cast<std::int32_t>(place);
  if constexpr (Codes::of_tables) {
    const TableTerms& t = points.table;
    const double sum = points.sums[place];
    const double with =
        t.copies *
        static_cast<double>(
            points
                .pair_sums[static_cast<std::int64_t>(job.apex) * points.count +
                           place]);
    to.tables[job.offset + row] = {
        static_cast<float>(with),
        static_cast<float>(t.copies * t.copies * sum - with),
        static_cast<float>(weight_of_counted(t, sum)),
        static_cast<std::int32_t>(place)};
  } else {
    to.counts[job.offset + row] =
        make_int2(bits, there ? static_cast<int>(points.sums[place]) : 0);
  }
}

}  // namespace

void start_triple_codes(const TriplePoints& points, unsigned* to,
                        cudaStream_t stream) {
  make_codes<<<4096, kThreads, 0, stream>>>(points, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_triple_code_pool(const TriplePoints& points, const TripleJob* jobs,
                            std::int64_t num_jobs, std::int64_t most_rows,
                            const TripleLists& lists, const TriplePool& to,
                            cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((most_rows + kWarps - 1) / kWarps),
                  static_cast<unsigned>(num_jobs));
  const auto start = [&](auto codes) {
    fill_code_pool<decltype(codes)>
        <<<grid, kThreads, 0, stream>>>(points, jobs, lists, to);
  };
  if (points.table.copies == 2.0)
    start(TwoAlleles());
  else if (points.table.copies == 1.0)
    start(OneAllele());
  else
    start(LargestCodes());
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
