#pragma once

// Missing entries as means of neighbours' values.

#include <cstdint>
#include <vector>

#include "core/progress.hpp"

namespace fsknn {

/// What is known of the rows whose entries are missing. Matrices are
/// column-major, as R's; NaN is missing.
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
  bool available = false;    ///< the k nearest that have the entry, else the k
                             ///< nearest, of which some may have it
  bool by_distance = false;  ///< weights 1 / distance
  bool rescaled = false;     ///< donors brought to the row's mean and spread
  int num_threads = 1;
};

/// One for each missing entry of the rows, by column, then in the rows' order.
struct ImputedEntries {
  std::vector<std::int32_t> row, column;  ///< from 1
  std::vector<double> value;              ///< NaN: there is no donor
  std::vector<double> spread;             ///< donors' sd; NaN of fewer than two
  std::vector<std::int32_t> donors;
};

ImputedEntries impute(const ImputeTask& task, Progress* progress = nullptr);

struct MissingCounts {
  std::vector<std::int32_t> rows, columns;
};

MissingCounts count_missing(const double* x, std::int64_t num_points,
                            std::int64_t num_features, int num_threads);

/// Values, and where they go, from 1, in the order of columns.
struct PutEntries {
  const std::int32_t* row = nullptr;
  const std::int32_t* column = nullptr;
  const double* value = nullptr;
  std::int64_t count = 0;
};

/// out: x, [num_points x num_features], with these.
void copy_with(const double* x, std::int64_t num_points,
               std::int64_t num_features, const PutEntries& entries,
               double* out, int num_threads);

}  // namespace fsknn
