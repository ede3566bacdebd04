#pragma once

// Rows that do not fit in memory, in a temporary file. They come in tiles, as a
// block reader delivers them, are checked and brought to the metric's form
// once, and are read by blocks again and again.
//
// The file holds doubles. Unit forms are stored prepared, since ranks and
// medians cost more than reading them; raw rows as they are, since their power
// of two is known only when all have been seen, and costs one product.

#include <cstdint>
#include <string>

#include "core/base/kinds.hpp"
#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/contract/row_scratch.hpp"
#include "core/files/digest.hpp"
#include "core/files/temporary_file.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// A matrix in a temporary file. Columns stand in strips, one after the other:
/// within a strip row follows row. With one strip rows are whole.
class DiskMatrix {
 public:
  /// Throws DiskFailure, also where the folder has too little room.
  DiskMatrix(const std::string& folder, std::int64_t num_rows,
             std::int64_t num_columns, std::int64_t strip_columns);

  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t num_columns() const { return num_columns_; }
  std::int64_t num_strips() const {
    return (num_columns_ + strip_columns_ - 1) / strip_columns_;
  }
  double bytes() const {
    return 8.0 * static_cast<double>(num_rows_) *
           static_cast<double>(num_columns_);
  }

  // Of several threads at once. `stride` doubles from row to row in memory.

  /// Rows of one strip, row-major.
  void write_strip(std::int64_t strip, std::int64_t first, std::int64_t count,
                   double* rows, std::int64_t stride);
  /// Whole rows.
  void write(std::int64_t first, std::int64_t count, double* rows,
             std::int64_t stride);
  void read(std::int64_t first, std::int64_t count, double* rows,
            std::int64_t stride) const;

 private:
  enum class Way { in, out };
  void move(Way way, std::int64_t strip, std::int64_t first, std::int64_t count,
            double* rows, std::int64_t stride) const;
  std::int64_t width_of(std::int64_t strip) const;

  const std::int64_t num_rows_, num_columns_, strip_columns_;
  const TemporaryFile file_;
};

/// Where rows are kept, and what is done to them besides preparing them.
struct RowFileForm {
  std::string folder;
  std::int64_t num_points = 0, num_features = 0;
  std::int64_t strip_features = 0;  ///< as of DiskMatrix
  bool binary = false;              ///< as of scan()
  bool fill_missing = false;        ///< with the row's mean
};

/// Fills a file with the rows of a source that comes in tiles.
class RowFile final : public RowSource {
 public:
  /// Rows are prepared as the request wants them, by `kernel`.
  RowFile(const RowFileForm& form, const Request& request, RowKernel kernel);

  /// Rows first .. of one strip, in order: strip by strip, rows ascending.
  void add(std::int64_t strip, std::int64_t first, const RowSource& tile);
  /// After the last tile: the facts of all rows; of missing values only where
  /// they are filled. progress (may be null) is only asked whether to go on.
  const MissingFacts& finish(Progress* progress);
  /// digest_source() of the rows as they came.
  std::string digest() const { return digests_.value(); }

  bool fills_missing() const { return fill_missing_; }

  double bytes() const { return matrix_.bytes(); }
  std::int64_t num_points() const override { return matrix_.num_rows(); }
  std::int64_t num_features() const override { return matrix_.num_columns(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    matrix_.read(first, count, out, stride);
  }
  bool on_disk() const override { return true; }
  bool prepared() const override { return recipe_.form != RowForm::raw; }

 private:
  template <class Fetch>
  void settle(std::int64_t first, std::int64_t count, Progress* progress,
              Fetch fetch);
  void settle_row(std::int64_t point, double* row, RowScratch& scratch,
                  MissingFacts& facts);

  DiskMatrix matrix_;
  const Request request_;  ///< the weights and covariates that the recipe has
  const RowRecipe recipe_;
  const RowKernel kernel_;
  const bool binary_, fill_missing_;
  MissingFacts facts_;
  RowDigests digests_;
};

}  // namespace fsknn
