#pragma once

// Stage "filter": what the engine knows of a filter. It keeps the rows in the
// filter's form, the lists of candidates and the order of the rounds; which
// pairs are looked at how is the filter's own affair.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/metrics.hpp"
#include "cuda/device/resources.cuh"
#include "cuda/exact/candidates.cuh"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/number_forms.hpp"
#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {

/// Prepared points, device memory.
struct PreparedRows {
  const double* rows = nullptr;  ///< [.. x padded], row-major
  const double* sums = nullptr;  ///< [..]; raw rows only, else zeros
  std::int64_t padded = 0;
};

/// Slots in a filter's form, device memory. Padding's are all zeros.
struct FilterRows {
  void* rows = nullptr;     ///< [num_slots x PairFilter::row_bytes()]
  float* values = nullptr;  ///< [PairFilter::floats_a_slot() x num_slots]
  std::int64_t num_slots = 0;
};

/// Some jobs of one round.
struct FilterWork {
  FilterRows rows, columns;  ///< the same for a graph
  CandidateLists lists;      ///< the rows'; of both where jobs.symmetric
  FilterJobs jobs;
};

/// A filter on the current device, for one search.
class PairFilter {
 public:
  explicit PairFilter(const RowsInForm& rows) : rows_(rows) {}
  virtual ~PairFilter() = default;
  PairFilter(const PairFilter&) = delete;
  PairFilter& operator=(const PairFilter&) = delete;

  std::int64_t row_bytes() const { return rows_.row_bytes; }
  std::int64_t floats_a_slot() const { return rows_.floats_a_slot; }

  /// Before any rows are made: some of the points, a fair sample, and what
  /// distances are multiplied by at last.
  virtual void learn(const PreparedRows& sample, std::int64_t count,
                     PowerOfTwo undo, cudaStream_t stream) {
    (void)sample, (void)count, (void)undo, (void)stream;
  }

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

  /// Rounds must be started in order, the lists cut after each.
  virtual void start(const FilterWork& work, cudaStream_t stream) = 0;

 protected:
  const RowsInForm rows_;
};

/// The filter of rows in the form that the plan chose.
std::unique_ptr<PairFilter> make_pair_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
