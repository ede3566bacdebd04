#include <utility>

#include "bind_common.hpp"
#include "core/files/bed_file.hpp"
#include "core/files/bin_file.hpp"
#include "core/files/row_file.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;

namespace {

/// A source that keeps R's external pointer alive during a search.
class OpenFile final : public RowSource {
 public:
  /// `count` of its points, from `first` on.
  OpenFile(SEXP file, std::int64_t first, std::int64_t count)
      : file_(file), first_(first), count_(count) {}
  std::int64_t num_points() const override { return count_; }
  std::int64_t num_features() const override { return rows_->num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    rows_->read(first_ + first, count, out, stride);
  }
  bool on_disk() const override { return rows_->on_disk(); }
  bool prepared() const override { return rows_->prepared(); }

 private:
  Rcpp::XPtr<RowFile> file_;
  const RowFile* rows_ = file_.checked_get();
  std::int64_t first_, count_;
};

/// Some points of a source that it owns.
class OwnedRange final : public RowSource {
 public:
  OwnedRange(std::unique_ptr<RowSource> whole, std::int64_t first,
             std::int64_t count)
      : whole_(std::move(whole)), range_(*whole_, first, count, true) {}
  std::int64_t num_points() const override { return range_.num_points(); }
  std::int64_t num_features() const override { return range_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    range_.read(first, count, out, stride);
  }
  bool on_disk() const override { return true; }

 private:
  const std::unique_ptr<RowSource> whole_;
  const RowRange range_;
};

}  // namespace

namespace fsknn {
namespace bind {

std::unique_ptr<RowSource> row_file_source(const Rcpp::List& x) {
  const Rcpp::NumericVector size = x["size"];
  const double first =
      x.containsElementNamed("first") ? Rcpp::as<double>(x["first"]) : 1.0;
  return std::unique_ptr<RowSource>(
      new OpenFile(x["file"], static_cast<std::int64_t>(first) - 1,
                   static_cast<std::int64_t>(size[0])));
}

std::unique_ptr<RowSource> bin_rows_source(const Rcpp::List& x) {
  const std::string path = Rcpp::as<std::string>(x["file"]);
  const std::string type = Rcpp::as<std::string>(x["type"]);
  const Rcpp::NumericVector size = x["whole"];
  std::unique_ptr<RowSource> rows;
  if (type == "bed")
    rows = std::make_unique<BedRows>(
        path, static_cast<std::int64_t>(size[0]),
        static_cast<std::int64_t>(size[1]),
        counted_allele(Rcpp::as<std::string>(x["allele"])));
  else
    rows = std::make_unique<BinRows>(path, bin_type(type));
  // Other arguments are as long as the file was when R opened it.
  if (static_cast<double>(rows->num_points()) != size[0] ||
      static_cast<double>(rows->num_features()) != size[1])
    throw FileFailure{path, "it has other rows or columns than it had", 0};
  if (!x.containsElementNamed("first")) return rows;
  return std::make_unique<OwnedRange>(
      std::move(rows),
      static_cast<std::int64_t>(Rcpp::as<double>(x["first"])) - 1,
      static_cast<std::int64_t>(Rcpp::as<Rcpp::NumericVector>(x["size"])[0]));
}

std::string row_file_digest(const Rcpp::List& x) {
  return Rcpp::XPtr<RowFile>(static_cast<SEXP>(x["file"]))->digest();
}

}  // namespace bind
}  // namespace fsknn

// An external pointer to an empty file for rows under the request's metric, or
// a failure. Missing values are filled with the row's mean unless the request's
// `na` is "error".
// [[Rcpp::export(rng = false)]]
SEXP cpp_row_file(std::string folder, double num_points, double num_features,
                  double strip_features, Rcpp::List request, int levels) {
  Rcpp::RObject out;
  const Rcpp::List failed = bind::guarded([&] {
    const Request r = bind::request_from(request);
    RowFileForm form;
    form.folder = folder;
    form.num_points = static_cast<std::int64_t>(num_points);
    form.num_features = static_cast<std::int64_t>(num_features);
    form.strip_features = static_cast<std::int64_t>(strip_features);
    form.levels = levels;
    form.fill_missing = Rcpp::as<std::string>(request["na"]) != "error";
    out = Rcpp::XPtr<RowFile>(new RowFile(
        form, r, cpu::choose_kernels(r.instruction_set).prepare_row));
    return Rcpp::List();
  });
  return out.isNULL() ? Rcpp::RObject(failed) : out;
}

// Adds a tile of strip `strip` that begins at row `first` (both from 1).
// Returns NULL, or a failure.
// [[Rcpp::export(rng = false)]]
SEXP cpp_row_file_add(SEXP file, double strip, double first, SEXP tile) {
  const Rcpp::List failed = bind::guarded([&] {
    Rcpp::XPtr<RowFile>(file)->add(static_cast<std::int64_t>(strip) - 1,
                                   static_cast<std::int64_t>(first) - 1,
                                   *bind::matrix_source(tile));
    return Rcpp::List();
  });
  return failed.size() > 0 ? Rcpp::RObject(failed) : Rcpp::RObject();
}

// The facts of cpp_scan(), or of cpp_scan_missing() if missing values are
// filled.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_row_file_finish(SEXP file) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const Rcpp::XPtr<RowFile> rows(file);
    const MissingFacts& facts = rows->finish(progress.get());
    return rows->fills_missing() ? bind::list_of(facts)
                                 : bind::list_of(facts.known);
  });
}

// Frees the disk space immediately.
// [[Rcpp::export(rng = false)]]
void cpp_row_file_close(SEXP file) { Rcpp::XPtr<RowFile>(file).release(); }

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_bytes_free(std::string folder) {
  return bind::guarded([&] {
    return Rcpp::List::create(Rcpp::_["bytes"] = bytes_free_in(folder));
  });
}
