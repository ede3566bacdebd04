#pragma once

// Missing values: the facts that arguments are checked against, and rows whose
// missing values are filled with the row's mean.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// The mean of a row's values that there are, NaN where there is none. In the
/// contract's lanes; the row is taken times a power of two and back, so that no
/// sum is beyond range, and the mean is brought between the least and the most
/// of the values, so that a constant row stays one.
double mean_of_known(const double* x, std::int64_t d);

/// Puts that mean in the place of NaN, zeros into a row with no value. Returns
/// how many were missing.
std::int64_t fill_with_mean(double* x, std::int64_t d);

/// Rows of another source with NaN replaced by the row's mean, made when they
/// are read: what comes after is as if the matrix had come so.
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
  /// All else as of a matrix without missing values: a row's values that there
  /// are, filled by its mean.
  MatrixFacts known;
};

/// Adds the facts of rows that come after.
void add_facts(MissingFacts& to, const MissingFacts& from);

/// By what the scan takes a missing value for filled. By the first value that
/// its row has it is quicker; all facts are the same but the counts of negative
/// values.
enum class FilledBy { mean, first };

/// progress (may be null) is only asked whether to go on.
MissingFacts scan_missing(const RowSource& source, int num_threads,
                          Progress* progress = nullptr,
                          const Preparing& preparing = Preparing(),
                          FilledBy by = FilledBy::mean);

}  // namespace fsknn
