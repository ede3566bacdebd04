#pragma once

// What the bindings share: R's types to the core's and back.

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

/// What `x` is an R object of class "metafeatures" of.
std::unique_ptr<MetafeatureSource> metafeature_source(const Rcpp::List& x);

/// The same of "latent_rows".
std::unique_ptr<RowSource> latent_source(const Rcpp::List& x);

/// The rows in a temporary file, an R object of class "row_file".
std::unique_ptr<RowSource> row_file_source(const Rcpp::List& x);

/// The rows in a folder, an R object of class "point_file".
std::unique_ptr<RowSource> point_file_source(const Rcpp::List& x);

/// Whatever can be searched: what bring_points() gives as values.
std::unique_ptr<RowSource> row_source(SEXP x);

/// digest_source() of the rows as they came to the file.
std::string row_file_digest(const Rcpp::List& x);

/// R's numbers from 1, or NULL, from 0.
std::vector<std::int32_t> numbers_from(SEXP numbers);

/// The features that count, by the request's `feature_subset`, from 0, in their
/// order, each any number of times; none: all do.
std::vector<std::int32_t> features_of(const Rcpp::List& request);

/// Whether missing values of `x` are to be filled; those of a file were when it
/// was written.
bool fills(SEXP x, const Rcpp::List& request);

/// As row_source(), of these features (none: of all), its missing values filled
/// by the mean of those.
std::unique_ptr<RowSource> row_source(SEXP x,
                                      const std::vector<std::int32_t>& features,
                                      bool fill);

/// As the request has it.
std::unique_ptr<RowSource> row_source(SEXP x, const Rcpp::List& request);

Request request_from(const Rcpp::List& request);

class Held;

/// What a search is of: its data, and what is asked of them.
struct Question {
  /// x: data, or a handle of points that are held. query: NULL where the points
  /// are searched among themselves.
  Question(SEXP x, SEXP query, const Rcpp::List& list);
  /// Whose neighbours are asked for; null: those of all points.
  const RowSource* asked() const {
    return subset != nullptr ? subset.get() : queries.get();
  }
  Held* held;  ///< null: none are
  std::unique_ptr<RowSource> read;
  const RowSource* points;  ///< those that are held, or were read
  Request request;
  std::unique_ptr<RowSubset> subset;
  std::unique_ptr<RowSource> queries;
};

/// As named lists.
Rcpp::List list_of(const CudaFailure& failure);
Rcpp::List list_of(const BackendFailure& failure);
Rcpp::List list_of(const Stats& stats);
Rcpp::List list_of(const MatrixFacts& facts);
Rcpp::List list_of(const MissingFacts& facts);

/// What a scan is told of how rows will be prepared, by a request or NULL.
class RowTest {
 public:
  explicit RowTest(SEXP request);
  const Preparing& preparing() const { return preparing_; }
  const std::vector<std::int32_t>& features() const { return features_; }

 private:
  Request request_;  ///< what the recipe points to
  std::vector<std::int32_t> features_;
  Preparing preparing_;
};

/// Numbers from 0 as R counts, from 1.
template <class T>
Rcpp::IntegerVector one_based(const std::vector<T>& from_zero) {
  Rcpp::IntegerVector out(from_zero.begin(), from_zero.end());
  for (int& number : out) ++number;
  return out;
}

/// GPUs as a data frame, in the columns of cuda_devices().
Rcpp::DataFrame table_of(const std::vector<cuda::Device>& found);

/// A vector of any length that R can hold. R's own error is caught, so that the
/// failure is one of ours: MemoryFailure.
SEXP new_vector(SEXPTYPE type, std::int64_t length);

/// A cli progress bar (if asked for) and R's interrupts. While it lives, poll()
/// hears R's interrupts too.
std::unique_ptr<Progress> r_progress(bool draw,
                                     const char* what = "Nearest neighbours");

/// As a request has it: progress; bar, share (a part of a bar that R holds);
/// watch (a file without which nobody waits for the answer any more).
std::unique_ptr<Progress> r_progress(const Rcpp::List& request);

/// A cli progress bar from 0 to 1. These may leave by a long jump.
SEXP new_bar(const std::string& what);
void set_bar(SEXP bar, double done);
void end_bar(SEXP bar);

/// Runs the work; a failure below becomes list(failure =, message =, facts),
/// which the R layer turns into a condition with words.
Rcpp::List guarded(const std::function<Rcpp::List()>& work);

/// guarded() for work on files. Hears Ctrl-C.
Rcpp::List with_files(const std::function<Rcpp::List()>& work);

}  // namespace bind
}  // namespace fsknn
