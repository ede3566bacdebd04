#pragma once

// Missing entries as means of the neighbours' values.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

/// The rows with missing entries, and their neighbours. Matrices are
/// column-major, as in R; NaN is missing.
struct ImputeTask {
  const double* x = nullptr;  ///< [num_points x num_features]
  std::int64_t num_points = 0, num_features = 0;
  const std::int32_t* rows = nullptr;  ///< [num_rows], of x, from 0
  std::int64_t num_rows = 0;
  const std::int32_t* index =
      nullptr;                       ///< [num_rows x most], from 1; < 1: none
  const double* distance = nullptr;  ///< [num_rows x most]
  std::int64_t most = 0;             ///< neighbours found
  std::int64_t k = 0;
  bool available = false;    ///< the k nearest that have the entry; else the k
                             ///< nearest, some of which may lack it
  bool by_distance = false;  ///< weights 1 / distance
  bool rescaled = false;     ///< scale donors to the row's mean and spread
  int num_threads = 1;
};

/// The missing entries of the rows, by column, then in the rows' order.
struct MissingEntries {
  std::vector<std::int64_t> start;  ///< [columns + 1] start of each in `rows`
  std::vector<std::int32_t> rows;   ///< numbers of task.rows
  std::int64_t size() const { return start.back(); }
};

MissingEntries find_missing(const ImputeTask& task,
                            Progress* progress = nullptr);

/// The output for each missing entry.
struct ImputedEntries {
  std::int32_t *row = nullptr, *column = nullptr;  ///< from 1
  double* value = nullptr;                         ///< NaN: there is no donor
  double* spread = nullptr;  ///< sd of donors; no_spread for fewer than two
  double no_spread = 0.0;
  std::int32_t* donors = nullptr;
};

void impute(const ImputeTask& task, const MissingEntries& entries,
            const ImputedEntries& out, Progress* progress = nullptr);

struct MissingCounts {
  std::vector<std::int32_t> rows, columns;
};

MissingCounts count_missing(const double* x, std::int64_t num_points,
                            std::int64_t num_features, int num_threads);

/// Values and their positions, from 1, in the order of columns.
struct PutEntries {
  const std::int32_t* row = nullptr;
  const std::int32_t* column = nullptr;
  const double* value = nullptr;
  std::int64_t count = 0;
};

/// Copies x, [num_points x num_features], to out with these entries.
void copy_with(const double* x, std::int64_t num_points,
               std::int64_t num_features, const PutEntries& entries,
               double* out, int num_threads);

}  // namespace fsknn
