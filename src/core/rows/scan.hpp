#pragma once

// One pass over a matrix that collects the facts for checking arguments.

#include <cstdint>
#include <vector>

#include "core/base/kinds.hpp"
#include "core/base/progress.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

struct Position {
  std::int64_t point;
  std::int64_t feature;
};

struct MatrixFacts {
  std::int64_t non_finite = 0;          ///< entries that are NA, NaN or Inf
  std::vector<Position> non_finite_at;  ///< the first three, column by column
  std::int64_t negative = 0;            ///< entries below 0, if requested
  std::vector<Position> negative_at;    ///< the first three, column by column
  std::int64_t off_levels = 0;          ///< entries other than 0 .. levels
  std::vector<Position> off_levels_at;  ///< the first three, column by column
  std::vector<std::int64_t> non_finite_rows;  ///< rows with such an entry
  std::vector<std::int64_t> constant;         ///< rows with max == min
  std::vector<std::int64_t> zero;             ///< rows of zeros only
  std::vector<std::int64_t> explained;        ///< rows that covariates explain
  double largest = 0.0;                       ///< largest |x|
  std::int64_t largest_row = -1;  ///< the first row with it; -1: all are 0
};

/// The entries to count, besides those that are not finite.
struct EntriesCounted {
  bool negative = true;
  /// Entries must be whole numbers from 0 to this; 0: they may be any.
  int levels = 0;
};

/// Adds a row of d features, which is point `point`. Returns whether it is
/// finite and not constant.
bool scan_row(const double* x, std::int64_t d, std::int64_t point,
              const EntriesCounted& counted, MatrixFacts& facts);

/// Adds the facts of later rows.
void add_facts(MatrixFacts& to, const MatrixFacts& from);

/// The preparation of rows, if it determines whether they vary.
struct Preparing {
  RowRecipe recipe;
  RowKernel kernel = nullptr;  ///< null: it does not determine that
};

/// progress (may be null) is only asked whether to continue.
MatrixFacts scan(const RowSource& source, int num_threads,
                 Progress* progress = nullptr,
                 const EntriesCounted& counted = EntriesCounted(),
                 const Preparing& preparing = Preparing());

}  // namespace fsknn
