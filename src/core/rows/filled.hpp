#pragma once

// Missing values: facts for checking arguments, and rows whose missing values
// are replaced by the row's mean.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// The mean of a row's known values; NaN if there are none. It is computed in
/// the contract's lanes. The row is scaled by a power of two and back, so that
/// no sum overflows. The mean is clamped to the range of the values, so that a
/// constant row stays constant.
double mean_of_known(const double* x, std::int64_t d);

/// Replaces NaN by that mean, or by zero in a row without any value. Returns
/// the number of missing values.
std::int64_t fill_with_mean(double* x, std::int64_t d);

/// Rows of another source with NaN replaced by the row's mean when they are
/// read. Later stages see a complete matrix.
class MeanFilled final : public RowSource {
 public:
  explicit MeanFilled(std::unique_ptr<RowSource> from)
      : from_(std::move(from)) {}
  std::int64_t num_points() const override { return from_->num_points(); }
  std::int64_t num_features() const override { return from_->num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;

 private:
  std::unique_ptr<RowSource> from_;
};

struct MissingFacts {
  std::int64_t missing = 0;         ///< entries that are NaN
  std::vector<std::int64_t> empty;  ///< rows with no value at all
  /// The other facts, as for a complete matrix: of the known values, after
  /// filling with the row's mean.
  MatrixFacts known;
};

/// Adds the facts of later rows.
void add_facts(MissingFacts& to, const MissingFacts& from);

/// The value that the scan fills in. The row's first known value is faster than
/// its mean; all facts are the same except the counts of negative values. Zeros
/// are for values that must be whole: these are counted as in a complete
/// matrix.
enum class FilledBy { mean, first, zero };

/// progress (may be null) is only asked whether to continue.
MissingFacts scan_missing(const RowSource& source, int num_threads,
                          Progress* progress = nullptr,
                          const Preparing& preparing = Preparing(),
                          FilledBy by = FilledBy::mean,
                          const EntriesCounted& counted = {});

}  // namespace fsknn
