#pragma once

// Stage "filter": what the engine knows of a filter. It keeps the rows in the
// filter's form, the lists of candidates and the order of the rounds; which
// pairs are looked at how is the filter's own affair.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <memory>

#include "core/contract/metric.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/candidate_pairs.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/limits.hpp"
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
  /// What brings row r to length 1, of a metric of such rows: whole ranks have
  /// the sum of their squares.
  __device__ double to_length_one(std::int64_t r) const {
    return sums[r] > 0.0 ? 1.0 / sqrt(sums[r]) : 1.0;
  }
#endif
};

/// Slots in a filter's form, device memory. Padding's are all zeros.
struct FilterRows {
  void* rows = nullptr;     ///< [num_slots x PairFilter::row_bytes()]
  float* values = nullptr;  ///< [PairFilter::floats_a_slot() x num_slots]
  std::int64_t num_slots = 0;
  /// Where one point stands in several slots: of each block of slots the block
  /// of `rows` that has its points' rows, device memory. Null: the same.
  const std::int32_t* block_of = nullptr;
};

/// Some jobs of one round.
struct FilterWork {
  FilterRows rows, columns;  ///< the same for a graph
  CandidateLists lists;      ///< the rows'; of both where jobs.symmetric
  /// With a count: pairs go into this list, and `lists` is not read. Columns
  /// have thresholds too then.
  CandidatePairs pairs;
  FilterJobs jobs;
  /// Where jobs.fill: what lists need not hold.
  FillRule fill_rule;
};

/// What a filter is to find.
struct Sought {
  std::int64_t num_points = 0;  ///< that each row meets
  std::int64_t k = 0;           ///< 0: all that are near enough
  bool forced = false;          ///< by this form, whether or not it pays
  /// byte_candidate_cost()
  double candidate_cost = byte_candidate_cost(kMostReranked);
  /// Candidates that a list has room for, as if rounds doubled.
  std::int64_t capacity = 0;
  /// Whether lists of few neighbours are reranked before the last rounds.
  bool reranks = true;
  /// Where k is 0: how near that is, before the matrix's scaling.
  double limit = HUGE_VAL;

  bool operator==(const Sought& other) const {
    return num_points == other.num_points && k == other.k &&
           forced == other.forced && candidate_cost == other.candidate_cost &&
           capacity == other.capacity && reranks == other.reranks &&
           limit == other.limit;
  }
};

/// Some of the points, a fair sample, by which a filter is chosen, and what
/// for; undo: what distances are multiplied by at last.
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
  /// Of a slot's, once learnt: no more than RowsInForm::row_bytes, where there
  /// is room for what may take the form's place.
  virtual std::int64_t row_bytes() const {
    return rows_.depth * rows_.sides * entry_of(rows_.form).bytes;
  }
  std::int64_t floats_a_slot() const { return rows_.floats_a_slot; }
  /// See FilterRounds.
  int reranked_rounds() const { return entry_of(rows_.form).reranked_rounds; }

  /// Before any rows are made, from a FilterSample. Points that are not of the
  /// sample may be any others. Returns whether a search for that by this form
  /// pays; if not, there is RowsInForm::otherwise(). May wait for the stream.
  virtual bool learn(const PreparedRows& sample, std::int64_t count,
                     PowerOfTwo undo, const Sought& sought,
                     const Stream& stream) {
    (void)sample, (void)count, (void)undo, (void)sought, (void)stream;
    return true;
  }

  /// Whether the filter may learn from other points, before all of its rows are
  /// made anew. What it learns changes no layout, and a bound that says nothing
  /// of some rows may say much of them then.
  virtual bool may_learn_again() const { return false; }

  /// Row r of `from` becomes slot slots[r] of `to` (-1: of none).
  virtual void start_rows(const PreparedRows& from, std::int64_t count,
                          const std::int32_t* slots, const FilterRows& to,
                          cudaStream_t stream) = 0;

  /// After all rows were made: by how much the cut must let entries differ. May
  /// wait for the stream.
  virtual void set_errors(Cut& cut, const FilterRows& rows,
                          const FilterRows& columns, const Stream& stream) = 0;

  /// After set_errors(), which left this cut: how similarities stand to
  /// distances. May wait for the stream.
  virtual SimilarityUnits units(const Cut& cut, const Stream& stream) = 0;

  /// Whether a candidate's similarity tells the contract's sum of the pair: see
  /// ExactStep.
  virtual bool tells_sums() const { return false; }

  /// Rounds must be started in order, the lists cut after each; those whose
  /// pairs go into one list in any.
  virtual void start(const FilterWork& work, cudaStream_t stream) = 0;

  /// After all columns were made, whether they can be held so; if not, there is
  /// RowsInForm::otherwise(). May wait for the stream.
  virtual bool suits(const Stream& stream) {
    (void)stream;
    return true;
  }

 protected:
  const RowsInForm rows_;
};

/// The filter of rows in the form that the plan chose.
std::unique_ptr<PairFilter> make_pair_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);

/// The same of the first form, of this one and what may take its place, that
/// pays by the sample, and has learnt from it. May wait for the stream.
std::unique_ptr<PairFilter> learnt_filter(const MetricEntry& metric,
                                          RowsInForm rows,
                                          const FilterSample& sample,
                                          const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
