#pragma once

// Rows that do not fit in memory, in a temporary file. They arrive in tiles
// from a block reader, are checked and prepared once, and are then read
// repeatedly by blocks.
//
// The file holds doubles. Unit forms are stored prepared, since ranks and
// medians cost more than reading them. Raw rows are not scaled: their power of
// two is known only after all have been read, and costs one product.

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

/// A matrix in a temporary file. Its columns are in strips, one after the
/// other; each strip is row-major. With one strip rows are contiguous.
class DiskMatrix {
 public:
  /// Throws DiskFailure, also if the folder has too little space.
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

  // Thread-safe. Rows in memory are `stride` doubles apart.

  /// Writes rows of one strip, row-major.
  void write_strip(std::int64_t strip, std::int64_t first, std::int64_t count,
                   double* rows, std::int64_t stride);
  /// Write and read whole rows.
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

/// The storage of rows, and their processing besides preparation.
struct RowFileForm {
  std::string folder;
  std::int64_t num_points = 0, num_features = 0;
  std::int64_t strip_features = 0;  ///< as for DiskMatrix
  int levels = 0;                   ///< EntriesCounted::levels
  bool fill_missing = false;        ///< with the row's mean
};

/// Receives the rows of a source in tiles.
class RowFile final : public RowSource {
 public:
  /// `kernel` prepares rows as the request requires.
  RowFile(const RowFileForm& form, const Request& request, RowKernel kernel);

  /// Adds rows from `first` on of one strip, in order: strip by strip, rows
  /// ascending.
  void add(std::int64_t strip, std::int64_t first, const RowSource& tile);
  /// Returns the facts of all rows after the last tile; those of missing values
  /// only if they are filled. progress (may be null) is only asked whether to
  /// continue.
  const MissingFacts& finish(Progress* progress);
  /// digest_source() of the rows before they were processed.
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
  void rerank(std::int64_t first, std::int64_t count, Progress* progress,
              Fetch fetch);
  void rerank_row(std::int64_t point, double* row, RowScratch& scratch,
                  MissingFacts& facts);

  DiskMatrix matrix_;
  const Request request_;  ///< owns the weights and covariates of the recipe
  const RowRecipe recipe_;
  const RowKernel kernel_;
  const EntriesCounted counted_;
  const bool fill_missing_;
  MissingFacts facts_;
  RowDigests digests_;
};

}  // namespace fsknn
