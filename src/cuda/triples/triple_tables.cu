// Finds triples whose tables of alleles may be similar enough, and counts them
// by similarity.
#include "cuda/triples/triple_counts.cuh"
#include "cuda/triples/triple_squares.cuh"
#include "cuda/triples/triple_table.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// A thread's rows with the apex, and their entries with columns.
struct TableRows : SquareRows {
  TripleTableRow row[2];
  std::int64_t place[2];

  __device__ TableRows(const TripleTileWork& work, const TripleSquare& square,
                       int warp, int lane)
      : SquareRows(work, square, warp, lane),
        points_(work.points),
        columns_(work.pool.tables + square.job->offset) {
    const std::int64_t apex = square.job->apex;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      place[i] = work.pool.places[pool_row[i]];
      row[i] = triple_table_row(
          points_.table,
          static_cast<double>(sum_of_pair(points_, apex, place[i])),
          points_.sums[apex], points_.sums[place[i]]);
    }
  }
  __device__ TripleTableColumn column(std::int64_t at) const {
    const float4 read = __ldg(reinterpret_cast<const float4*>(columns_) + at);
    return {read.x, read.y, read.z, __float_as_int(read.w)};
  }
  __device__ float entry(int i, const TripleTableColumn& of, int sum) const {
    const float with_row = static_cast<float>(points_.table.copies) *
                           sum_of_pair(points_, place[i], of.place);
    return entry_of_three(row[i], of, with_row, static_cast<float>(sum));
  }

 private:
  const TriplePoints& points_;
  const TripleTableColumn* columns_;
};

// Two blocks handle a square at a time. In: the pool, lists and jobs of the
// work. Out: candidates. Grid: x, an even number. Block: kSquareThreads.
// Shared: SquareMemory.
__global__ void __launch_bounds__(kSquareThreads, 1)
    filter_tables(const TripleTileWork work) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const auto take = [&](const TripleSquare& square, const SquareSums& sums,
                        int warp, int lane) {
    const TableRows rows(work, square, warp, lane);
    const float limit = square.job->limit;
#pragma unroll
    for (int g = 0; g < SquareSums::groups; ++g) {
      const std::int64_t column = rows.first_column + 8 * g;
      int of_products[4];
      unsigned passes = 0;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const TripleTableColumn of = rows.column(column + e);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int q = 2 * i + e;
          of_products[q] = sums.common[4 * g + q];
          if (!(rows.entry(i, of, of_products[q]) < limit) &&
              rows.has(i, column + e))
            passes |= 1u << q;
        }
      }
      if (__any_sync(0xffffffffu, passes != 0))
        put_counted(work, square, rows, passes, of_products, column, lane);
    }
  };
  for_squares(work, memory, take, [] {});
}

// Does the same for counts. Out: counts of bins. Shared: kTakenBytes and
// kBinBytes, besides.
__global__ void __launch_bounds__(kSquareThreads, 1)
    count_tables(const TripleTileWork work, const TripleBins bins) {
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned char* const data = data_of_kernel(memory);
  BlockCounts counts(bins, data + kTakenBytes, kBinBytes);
  const ThreeLoci loci(work.points.table);
  const int last_bin = static_cast<int>(bins.num_breaks);
  const auto take_square = [&](const TripleSquare& square,
                               const SquareSums& sums, int warp, int lane) {
    const TableRows rows(work, square, warp, lane);
    // Most sums of a thread are in the previous sum's bin.
    int last = 0;
    unsigned in_last = 0;
    for_each_sum(sums, data, warp, lane, [&](int g, int at, int sum) {
      const int i = at / 2;
      const std::int64_t column = rows.first_column + 8 * g + at % 2;
      if (!rows.has(i, column)) return;
      const TripleTableColumn of = rows.column(column);
      const double entry = static_cast<double>(rows.entry(i, of, sum));
      int bin = counts.bin_of(loci.least_of(entry));
      // Above the breaks there is one bin.
      if (bin < last_bin && !(loci.most_of(entry) < counts.end_of(bin)))
        bin = counts.bin_of(similarity_of_table(
            work.points, sum, square.job->apex, rows.place[i], of.place));
      if (bin != last) {
        counts.add(last, in_last);
        last = bin;
        in_last = 0;
      }
      ++in_last;
    });
    counts.add(last, in_last);
  };
  for_squares(work, memory, take_square, [&] {
    meet_consumers();
    counts.put(256);
  });
}

}  // namespace

void start_triple_table_filter(const TripleTileWork& work,
                               cudaStream_t stream) {
  start_squares(filter_tables, 0, work, stream, work);
}

void start_triple_table_counts(const TripleTileWork& work,
                               const TripleBins& bins, cudaStream_t stream) {
  start_squares(count_tables, kTakenBytes + kBinBytes, work, stream, work,
                bins);
}

}  // namespace cuda
}  // namespace fsknn
