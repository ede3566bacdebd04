#pragma once

// The stage "filter": the interface of a filter for the engine. The engine
// keeps the rows in the filter's form, the lists of candidates and the order of
// the rounds. The filter decides how pairs are compared.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <memory>

#include "core/contract/metric.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/candidate_pairs.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/number_forms.hpp"
#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {

/// Prepared points, device memory.
struct PreparedRows {
  const double* rows = nullptr;  ///< [.. x padded], row-major
  const double* sums = nullptr;  ///< [..], what prepare_row() returned
  std::int64_t padded = 0;

#ifdef __CUDACC__
  /// Returns the factor that scales row r to length 1, for a metric of such
  /// rows: for whole ranks, `sums` has the sum of their squares.
  __device__ double to_length_one(std::int64_t r) const {
    return sums[r] > 0.0 ? 1.0 / sqrt(sums[r]) : 1.0;
  }
#endif
};

/// Slots in a filter's form, device memory. Padding is all zeros.
struct FilterRows {
  void* rows = nullptr;     ///< [num_slots x PairFilter::row_bytes()]
  float* values = nullptr;  ///< [PairFilter::floats_a_slot() x num_slots]
  std::int64_t num_slots = 0;
  /// Where a point may occupy several slots: for each block of slots the block
  /// of `rows` that has its points' rows, device memory. Null: the same.
  const std::int32_t* block_of = nullptr;
};

/// Some jobs of one round, and where the pairs that pass are written.
struct PairJobs {
  CandidateLists lists;  ///< of rows; of both where jobs.symmetric
  /// If it has a count, pairs go into this list, and `lists` is not read.
  /// Columns then have thresholds too.
  CandidatePairs pairs;
  FilterJobs jobs;
  /// Where jobs.fill: the entries that lists may omit.
  FillRule fill_rule;
};
struct FilterWork : PairJobs {
  FilterRows rows, columns;  ///< the same for a graph
};

/// The search that a filter serves.
struct Sought {
  std::int64_t num_points = 0;  ///< that are compared with each row
  std::int64_t k = 0;           ///< 0: all within a distance
  bool forced = false;          ///< use this form, whether or not it pays
  /// byte_candidate_cost()
  double candidate_cost = byte_candidate_cost(kMostReranked);
  /// The capacity of a list, as if rounds doubled.
  std::int64_t capacity = 0;
  /// Whether lists of few neighbours are re-ranked exactly before the last
  /// rounds.
  bool reranks = true;
  /// Where k is 0: the distance limit, before the matrix's scaling.
  double limit = HUGE_VAL;
  /// Whether points are put in the order of a tree.
  TreeUse tree = TreeUse::never;

  bool operator==(const Sought& other) const {
    return num_points == other.num_points && k == other.k &&
           forced == other.forced && candidate_cost == other.candidate_cost &&
           capacity == other.capacity && reranks == other.reranks &&
           limit == other.limit && tree == other.tree;
  }
};

/// A fair sample of the points, by which a filter is chosen, and its purpose;
/// undo: the final factor of distances.
struct FilterSample {
  PreparedRows rows;
  std::int64_t count = 0;
  PowerOfTwo undo = {1.0, 1.0};
  Sought sought;
};

/// A filter on the current device, for one search.
class PairFilter {
 public:
  explicit PairFilter(const RowsInForm& rows) : rows_(rows) {}
  virtual ~PairFilter() = default;
  PairFilter(const PairFilter&) = delete;
  PairFilter& operator=(const PairFilter&) = delete;

  const RowsInForm& rows() const { return rows_; }
  FilterNumbers numbers() const { return rows_.numbers(); }
  /// Returns the bytes of a slot's row after learn(). It is at most
  /// RowsInForm::row_bytes, which has room for the forms that may replace this
  /// one.
  virtual std::int64_t row_bytes() const {
    return rows_.depth * rows_.sides * entry_of(rows_.form).bytes;
  }
  std::int64_t floats_a_slot() const { return rows_.floats_a_slot; }
  /// See FilterRounds.
  int reranked_rounds() const { return entry_of(rows_.form).reranked_rounds; }

  /// Learns from a FilterSample before any rows are made. Points outside the
  /// sample may be arbitrary. Returns whether this form pays for the search; if
  /// not, there is RowsInForm::otherwise(). May wait for the stream.
  virtual bool learn(const PreparedRows& sample, std::int64_t count,
                     PowerOfTwo undo, const Sought& sought,
                     const Stream& stream) {
    (void)sample, (void)count, (void)undo, (void)sought, (void)stream;
    return true;
  }

  /// Returns whether the filter may learn from other points, before all of its
  /// rows are remade. The layout does not change. Rows without a bound may then
  /// have a tight one.
  virtual bool may_learn_again() const { return false; }

  /// Makes row r of `from` slot slots[r] of `to` (-1: none).
  virtual void start_rows(const PreparedRows& from, std::int64_t count,
                          const std::int32_t* slots, const FilterRows& to,
                          cudaStream_t stream) = 0;

  /// Sets the errors that the cut must allow, after all rows were made. May
  /// wait for the stream.
  virtual void set_errors(Cut& cut, const FilterRows& rows,
                          const FilterRows& columns, const Stream& stream) = 0;

  /// Returns the relation of similarities to distances, after set_errors() has
  /// set this cut. May wait for the stream.
  virtual SimilarityUnits units(const Cut& cut, const Stream& stream) = 0;

  /// Returns whether a candidate's similarity determines the contract's sum of
  /// the pair: see ExactStep.
  virtual bool tells_sums() const { return false; }

  /// Starts a round. Rounds must be in order, with a cut of the lists after
  /// each. Where pairs go into one list, any order will do.
  virtual void start(const FilterWork& work, cudaStream_t stream) = 0;

  /// Returns whether the columns, once all are made, can be held in this form;
  /// if not, there is RowsInForm::otherwise(). May wait for the stream.
  virtual bool suits(const Stream& stream) {
    (void)stream;
    return true;
  }

 protected:
  const RowsInForm rows_;
};

/// Makes the filter for rows in the form that the plan chose.
std::unique_ptr<PairFilter> make_pair_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);

/// Makes the first filter, of this form and those that may replace it, that
/// pays by the sample; it has learnt from it. May wait for the stream.
std::unique_ptr<PairFilter> learnt_filter(const MetricEntry& metric,
                                          RowsInForm rows,
                                          const FilterSample& sample,
                                          const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
