#pragma once

// Triples on a device. X_j = max(v_apex, v_j) is computed once for each apex,
// in 16 bits a value. max(X_j, X_k) is then the largest of the three, so that
// pairs of the X are processed tile by tile. Pairs that their sums do not
// decide are computed in the contract's doubles.
//
// Small whole numbers become thermometer codes instead, and X_j is the union of
// two codes. Tensor cores count the common bits of X_j and X_k without
// rounding. The sum of max(X_j, X_k) is |X_j| + |X_k| less that count, which
// decides the pair exactly.
//
// Tables of three loci need the sum of products instead. X has a bit for each
// choice of an allele at each locus, and the common bits of a row's X and a
// column's are that sum. The tables' other entries follow from it and from the
// sums of pairs.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/contract/scaling.hpp"
#include "core/contract/table_numbers.hpp"
#include "core/search/triple_scanner.hpp"
#include "cuda/plan/triple_plan.hpp"

namespace fsknn {
namespace cuda {

/// Points by place, device memory.
struct TriplePoints {
  std::int64_t count = 0, padded = 0;
  std::int64_t depth = 0;        ///< of X, in 16 bits
  std::int64_t own_depth = 0;    ///< of a point's own numbers or codes
  const double* rows = nullptr;  ///< [count x padded], prepared
  const double* sums = nullptr;  ///< [count] of these rows
  TripleForm form = TripleForm::halves;
  const void* numbers = nullptr;  ///< [count x own_depth]: triple_bound.hpp
  int bits = 0;                   ///< of a value's code; 0: halves
  /// [count x own_depth], 16 bits each: bit f of word w bits + t of a row tells
  /// whether feature 32 w + f is above t.
  const void* codes = nullptr;
  const float* most = nullptr;      ///< [count] TripleSumBound::float_most_of()
  const char* contained = nullptr;  ///< [count] of TripleOwners; null: all
  std::int64_t stage = 0, stages = 1;
  TableTerms table;  ///< of tables of alleles
  /// [count x count] of tables: the pairs' sums of products; else null.
  const float* pair_sums = nullptr;
};

/// An apex of a task.
struct TripleJob {
  std::int32_t apex = 0, begin = 0, end = 0;  ///< as TripleApex
  std::int32_t columns = 0;                   ///< others in the pool
  std::int64_t offset = 0;                    ///< in the pool, of the first
  std::int64_t row_offset = 0;                ///< of codes, of the first row
  std::int64_t first_tile = 0;  ///< the number of others before it
  std::int32_t rows = 0;        ///< others that may be the lower
  std::int32_t list = 0;        ///< its number among the lists
  double share = 0, third = 0;  ///< of TripleBound
  double least = 0;
  float float_share = 0;    ///< above share
  float limit = 0;          ///< of tables: ThreeLoci::limit_of(least)
  std::int32_t number = 0;  ///< in the task
  /// Returns its tiles; for host and device.
  FSKNN_HD TripleTiles tiles() const {
    TripleTiles t;
    t.columns = columns;
    t.rows = rows;
    return t;
  }
  FSKNN_HD TripleSquares squares() const {
    TripleSquares s;
    s.columns = columns;
    s.rows = rows;
    return s;
  }
};

/// Computes the largest of all values of rows [count x padded]; `largest` must
/// be 0 before.
void start_largest_value(const double* rows, std::int64_t size, double* largest,
                         cudaStream_t stream);

/// Computes how much each row's scaled values lose to the largest word.
void start_cutting_words(const TriplePoints& points, PowerOfTwo scale,
                         double* cut, cudaStream_t stream);

/// Converts the points' rows to `to` [count x depth], in the points' form.
void start_triple_numbers(const TriplePoints& points, PowerOfTwo scale,
                          __half* to, cudaStream_t stream);

/// Makes codes `to` [count x depth], zeros before, from rows of small whole
/// numbers.
void start_triple_codes(const TriplePoints& points, unsigned* to,
                        cudaStream_t stream);

/// The others in the triples of each job, ascending.
struct TripleLists {
  float* pair_sums = nullptr;      ///< [jobs x count]
  std::int32_t* others = nullptr;  ///< [jobs x count] places
  std::int32_t* lowers = nullptr;  ///< [jobs x count] numbers among the others
  std::int32_t* sizes = nullptr;   ///< [jobs x 2] of both lists
};
/// Where `by_pairs`, excludes an other whose pair sum with the apex exceeds the
/// maximum that a triple's bound allows.
struct TripleChoice {
  bool by_pairs = true;
  PowerOfTwo scale;
  double up = 1.0;           ///< a sum of halves is at most this times the true
                             ///< one
  double largest_sum = 0.0;  ///< of all rows
};
/// Computes the sums of each job's apex with each of its others: of largest
/// values, or for tables of products.
void start_triple_pair_sums(const TriplePoints& points, const TripleJob* jobs,
                            std::int64_t num_jobs, float* pair_sums,
                            cudaStream_t stream);
/// Where `by_pairs`, the sums must have been computed.
void start_triple_lists(const TriplePoints& points, const TripleJob* jobs,
                        std::int64_t num_jobs, const TripleChoice& choice,
                        const TripleLists& to, cudaStream_t stream);

/// Finds the points with the least sums relative to the rows' own. alike: [jobs
/// x count] their places, in that order; count: below the number of points.
/// Needs pair sums with all other points.
void start_most_alike(const TriplePoints& points, const TripleJob* jobs,
                      std::int64_t num_jobs, const float* pair_sums,
                      std::int64_t count, std::int32_t* alike,
                      cudaStream_t stream);

/// The numbers of an other with the apex, for tables: as TripleTableColumns of
/// the CPU.
struct alignas(16) TripleTableColumn {
  float with_apex, without, weight;
  std::int32_t place;
};

/// X of the others of some jobs.
struct TriplePool {
  __half* x = nullptr;             ///< [pool rows x depth]
  std::int32_t* places = nullptr;  ///< [pool rows]
  float* most = nullptr;           ///< [pool rows] of the points
  /// [pool rows] for codes: x the number of bits in X, y the point's sum.
  int2* counts = nullptr;
  TripleTableColumn* tables = nullptr;  ///< [pool rows]
};
void start_triple_pool(const TriplePoints& points, const TripleJob* jobs,
                       std::int64_t num_jobs, std::int64_t most_columns,
                       const TripleLists& lists, const TriplePool& to,
                       cudaStream_t stream);
/// Fills the pool with codes. most_rows: the largest bit_pool_rows() of a job.
void start_triple_code_pool(const TriplePoints& points, const TripleJob* jobs,
                            std::int64_t num_jobs, std::int64_t most_rows,
                            const TripleLists& lists, const TriplePool& to,
                            cudaStream_t stream);

/// Two places and a job, whose apex is the third.
struct TripleCandidate {
  std::int32_t lower, higher, job;
  std::int32_t sum;  ///< for codes: of the largest values, or of products
};

/// Tiles, or squares, [from, to) of some jobs.
struct TripleTileWork {
  TriplePoints points;
  TriplePool pool;
  const TripleJob* jobs = nullptr;
  std::int64_t num_jobs = 0;
  const std::int32_t* lowers = nullptr;  ///< of TripleLists
  std::int64_t from = 0, to = 0;
  TripleCandidate* candidates = nullptr;
  std::int64_t capacity = 0;
  unsigned long long* num_candidates = nullptr;  ///< may exceed the capacity
};

/// Bins of similarities.
struct TripleBins {
  const double* breaks = nullptr;
  std::int64_t num_breaks = 0;
  unsigned long long* counts = nullptr;  ///< [breaks + 1]
  double low = 0, high = 0, lost = 0;    ///< of TripleSumBound
  double off_exact = 0;
  double small = 0;  ///< below this scaled total a sum of halves gives no bound
  PowerOfTwo scale;
};

/// Finds candidates: triples that may reach their job's similarity.
void start_triple_filter(const TripleTileWork& work, cudaStream_t stream);

/// Counts by bins; candidates are triples whose bin is not decided.
void start_triple_counts(const TripleTileWork& work, const TripleBins& bins,
                         cudaStream_t stream);

/// Do the same two for codes. Candidates have their sums. The filter's are
/// those that may be similar enough; counting leaves none.
void start_triple_bit_filter(const TripleTileWork& work, cudaStream_t stream);
void start_triple_bit_counts(const TripleTileWork& work, const TripleBins& bins,
                             cudaStream_t stream);

/// Do the same for tables of alleles.
void start_triple_table_filter(const TripleTileWork& work, cudaStream_t stream);
void start_triple_table_counts(const TripleTileWork& work,
                               const TripleBins& bins, cudaStream_t stream);

/// Returns whether the current device's code counts bits in this way.
bool has_triple_bits();

/// Selects the candidates whose similarity by the contract reaches their job's.
/// Does nothing if there are more candidates than the capacity.
void start_reranking_triples(const TripleTileWork& work, TripleHit* hits,
                             unsigned long long* num_hits, cudaStream_t stream);

/// Does the same into bins.
void start_counting_reranked(const TripleTileWork& work, const TripleBins& bins,
                             cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
