#pragma once

// Conversions between R's types and the core's, for all bindings.

#include <Rcpp.h>

#include <functional>
#include <memory>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/metafeatures.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/source.hpp"
#include "core/rows/subset.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace bind {

/// A view of a double, integer or logical matrix.
std::unique_ptr<RowSource> matrix_source(SEXP x);

/// The source for an R object of class "metafeatures".
std::unique_ptr<MetafeatureSource> metafeature_source(const Rcpp::List& x);

/// The source for an R object of class "latent_rows".
std::unique_ptr<RowSource> latent_source(const Rcpp::List& x);

/// The source for rows in a temporary file, an R object of class "row_file".
std::unique_ptr<RowSource> row_file_source(const Rcpp::List& x);

/// The source for points in the user's file, an R object of class "bin_rows".
std::unique_ptr<RowSource> bin_rows_source(const Rcpp::List& x);

/// The source for points in a folder, an R object of class "point_file".
std::unique_ptr<RowSource> point_file_source(const Rcpp::List& x);

/// The source for any data that bring_points() returns as values.
std::unique_ptr<RowSource> row_source(SEXP x);

/// digest_source() of the rows before they were processed for the file.
std::string row_file_digest(const Rcpp::List& x);

/// Converts R's numbers from 1, or NULL, to numbers from 0.
std::vector<std::int32_t> numbers_from(SEXP numbers);

/// The features of the request's `feature_subset`, from 0, in their order, with
/// repetition. Empty: all features.
std::vector<std::int32_t> features_of(const Rcpp::List& request);

/// Whether missing values of `x` must be filled. Those of a file are filled
/// when it is written.
bool fills(SEXP x, const Rcpp::List& request);

/// As row_source(), with these features only (empty: all). With `fill`, missing
/// values become the mean over those features.
std::unique_ptr<RowSource> row_source(SEXP x,
                                      const std::vector<std::int32_t>& features,
                                      bool fill);

/// As above, with features and filling from the request.
std::unique_ptr<RowSource> row_source(SEXP x, const Rcpp::List& request);

Request request_from(const Rcpp::List& request);

class Held;

/// The data of a search and its request.
struct Question {
  /// x: data, or a handle of held points. query: NULL to search the points
  /// among themselves.
  Question(SEXP x, SEXP query, const Rcpp::List& list);
  /// The rows whose neighbours are searched; null: all points.
  const RowSource* asked() const {
    return subset != nullptr ? subset.get() : queries.get();
  }
  Held* held;  ///< null: points are not held
  std::unique_ptr<RowSource> read;
  const RowSource* points;  ///< held, or owned by `read`
  Request request;
  std::unique_ptr<RowSubset> subset;
  std::unique_ptr<RowSource> queries;
};

/// Convert to named lists.
Rcpp::List list_of(const CudaFailure& failure);
Rcpp::List list_of(const BackendFailure& failure);
Rcpp::List list_of(const Stats& stats);
Rcpp::List list_of(const MatrixFacts& facts);
Rcpp::List list_of(const MissingFacts& facts);

/// The preparation of rows, for a scan, from a request or NULL.
class RowTest {
 public:
  explicit RowTest(SEXP request);
  const Preparing& preparing() const { return preparing_; }
  const std::vector<std::int32_t>& features() const { return features_; }

 private:
  Request request_;  ///< owns the data that the recipe refers to
  std::vector<std::int32_t> features_;
  Preparing preparing_;
};

/// Converts numbers from 0 to R's numbers from 1.
template <class T>
Rcpp::IntegerVector one_based(const std::vector<T>& from_zero) {
  Rcpp::IntegerVector out(from_zero.begin(), from_zero.end());
  for (int& number : out) ++number;
  return out;
}

/// GPUs as a data frame with the columns of cuda_devices().
Rcpp::DataFrame table_of(const std::vector<cuda::Device>& found);

/// A vector of any length that R supports. An R error is caught and becomes a
/// MemoryFailure.
SEXP new_vector(SEXPTYPE type, std::int64_t length);

/// A cli progress bar (if requested) and R's interrupts. During its lifetime,
/// poll() also checks R's interrupts.
std::unique_ptr<Progress> r_progress(bool draw,
                                     const char* what = "Nearest neighbours");

/// The progress of a request: progress; bar and share (a part of a bar that R
/// holds); watch (a file: after it is deleted the answer is no longer needed).
std::unique_ptr<Progress> r_progress(const Rcpp::List& request);

/// A cli progress bar from 0 to 1. These functions may long-jump.
SEXP new_bar(const std::string& what);
void set_bar(SEXP bar, double done);
void end_bar(SEXP bar);

/// Runs the work. A failure below becomes list(failure =, message =, facts),
/// from which the R layer makes a condition with words.
Rcpp::List guarded(const std::function<Rcpp::List()>& work);

/// guarded() for work on files, which Ctrl-C can interrupt.
Rcpp::List with_files(const std::function<Rcpp::List()>& work);

}  // namespace bind
}  // namespace fsknn
