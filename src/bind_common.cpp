#include "bind_common.hpp"

#include <cli/progress.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <string>

#include "bind_held.hpp"
#include "core/base/errors.hpp"
#include "core/base/kinds.hpp"
#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "core/files/durable.hpp"
#include "core/rows/filled.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace bind {
namespace {

struct Allocation {
  SEXPTYPE type;
  R_xlen_t length;
};

SEXP allocate(void* what) {
  const Allocation* a = static_cast<const Allocation*>(what);
  return Rf_allocVector(a->type, a->length);
}

SEXP no_memory(SEXP, void*) { return R_NilValue; }

std::vector<std::int64_t> zero_based(const Rcpp::IntegerVector& rows) {
  std::vector<std::int64_t> out(rows.begin(), rows.end());
  for (std::int64_t& i : out) --i;
  return out;
}

/// The request's `blocks`: list(of, count, lists, of_row), with numbers from 1,
/// or 0 for a row without a group. Null if it is NULL.
std::shared_ptr<const PointGroups> groups_from(const Rcpp::List& request) {
  if (!request.containsElementNamed("blocks") || Rf_isNull(request["blocks"]))
    return nullptr;
  using Lists = PointGroups::Lists;
  const Rcpp::List blocks = request["blocks"];
  const std::string name = Rcpp::as<std::string>(blocks["lists"]);
  const Lists lists = name == "each"     ? Lists::each
                      : name == "others" ? Lists::others
                                         : Lists::together;
  return std::make_shared<PointGroups>(lists, Rcpp::as<int>(blocks["count"]),
                                       numbers_from(blocks["of"]),
                                       numbers_from(blocks["of_row"]));
}

/// The request's `adjust`, a matrix with a row for each feature; null if there
/// are no covariates.
std::shared_ptr<const SampleCovariates> covariates_from(
    const Rcpp::List& request, const SampleWeights* weights) {
  if (!request.containsElementNamed("adjust") || Rf_isNull(request["adjust"]))
    return nullptr;
  const Rcpp::NumericMatrix values = request["adjust"];
  auto covariates = std::make_shared<SampleCovariates>(
      values.begin(), values.nrow(), values.ncol(), weights);
  if (!covariates->leave_something())
    throw std::invalid_argument("covariates leave nothing of any row");
  return covariates;
}

/// R's C functions may long-jump, so each is called through R_ToplevelExec().
class RProgress final : public Progress, private Listener {
 public:
  RProgress(bool draw, std::string what)
      : draw_(draw), what_(std::move(what)), listening_(this) {}
  ~RProgress() override {
    if (bar_ == R_NilValue || !own_bar_) return;
    R_ToplevelExec(&RProgress::finish, this);
    R_ReleaseObject(bar_);
  }
  /// Draws into the range from .. to of another owner's bar.
  void share_bar(SEXP bar, double from, double to) {
    bar_ = bar;
    own_bar_ = false;
    draw_ = true;
    from_ = from;
    to_ = to;
  }
  void watch(const std::string& file) { watched_ = file; }

  bool report(double done) override {
    if (done >= 0.0) done_ = from_ + (to_ - from_) * done;
    if (!watched_.empty() && access(watched_.c_str(), F_OK) != 0) return false;
    return R_ToplevelExec(&RProgress::step, this) == TRUE;
  }

 private:
  void listen() override {
    if (tenths_.over() && !report(-1.0)) throw Interrupted();
  }
  static void step(void* self) {
    RProgress* p = static_cast<RProgress*>(self);
    R_CheckUserInterrupt();
    if (p->draw_) p->draw();
  }
  /// The bar is made only if the work takes a while: the first bar of a session
  /// costs cli more time than many searches take.
  void draw() {
    if (bar_ == R_NilValue) {
      if (seconds_since(start_) < 0.5) return;
      bar_ = new_bar(what_);
      R_PreserveObject(bar_);
    }
    if (CLI_SHOULD_TICK) cli_progress_set(bar_, done_);
  }
  static void finish(void* self) {
    cli_progress_done(static_cast<RProgress*>(self)->bar_);
  }

  bool draw_;
  const std::string what_;
  Listening listening_;
  std::string watched_;
  Clock::time_point start_ = Clock::now();
  Tenths tenths_;
  SEXP bar_ = R_NilValue;
  bool own_bar_ = true;
  double done_ = 0.0, from_ = 0.0, to_ = 1.0;
};

Rcpp::List failure(const char* kind, const std::string& message) {
  return Rcpp::List::create(Rcpp::_["failure"] = kind,
                            Rcpp::_["message"] = message);
}

/// The request's `subset`, the rows of `points` to search for, as queries; null
/// if it is NULL. Records in the request that these queries are points.
std::unique_ptr<RowSubset> subset_of(const RowSource& points,
                                     const Rcpp::List& list, Request& request) {
  if (!list.containsElementNamed("subset") || Rf_isNull(list["subset"]))
    return nullptr;
  std::vector<std::int32_t> numbers = numbers_from(list["subset"]);
  request.query_self = numbers;
  request.query_skip = positions_in(numbers, request.skip);
  return std::unique_ptr<RowSubset>(new RowSubset(points, std::move(numbers)));
}

/// The id of each query among the points; NA becomes -1.
std::vector<std::int32_t> query_self_of(const Rcpp::List& list) {
  if (!list.containsElementNamed("query_self") || Rf_isNull(list["query_self"]))
    return {};
  const Rcpp::IntegerVector numbers = list["query_self"];
  std::vector<std::int32_t> self;
  self.reserve(static_cast<std::size_t>(numbers.size()));
  for (const int number : numbers)
    self.push_back(number == NA_INTEGER ? -1 : number - 1);
  return self;
}

}  // namespace

std::vector<std::int32_t> numbers_from(SEXP numbers) {
  if (Rf_isNull(numbers)) return {};
  std::vector<std::int32_t> out = Rcpp::as<std::vector<std::int32_t>>(numbers);
  for (std::int32_t& i : out) --i;
  return out;
}

std::unique_ptr<RowSource> matrix_source(SEXP x) {
  const Rcpp::IntegerVector dim = Rf_getAttrib(x, R_DimSymbol);
  switch (TYPEOF(x)) {
    case REALSXP:
      return std::unique_ptr<RowSource>(
          new MatrixSource<double>(REAL(x), dim[0], dim[1]));
    case INTSXP:
    case LGLSXP:
      // NA_INTEGER and NA_LOGICAL have the same value, which becomes NaN.
      return std::unique_ptr<RowSource>(
          new MatrixSource<int>(INTEGER(x), dim[0], dim[1]));
    default: Rcpp::stop("not a numeric matrix");
  }
}

std::unique_ptr<RowSource> row_source(SEXP x) {
  if (Rf_inherits(x, "metafeatures")) return metafeature_source(x);
  if (Rf_inherits(x, "latent_rows")) return latent_source(x);
  if (Rf_inherits(x, "point_file")) return point_file_source(x);
  if (Rf_inherits(x, "bin_rows")) return bin_rows_source(x);
  if (Rf_inherits(x, "row_file")) return row_file_source(x);
  return matrix_source(x);
}

std::vector<std::int32_t> features_of(const Rcpp::List& request) {
  if (!request.containsElementNamed("feature_subset")) return {};
  return numbers_from(request["feature_subset"]);
}

bool fills(SEXP x, const Rcpp::List& request) {
  return Rcpp::as<std::string>(request["na"]) == "mean" &&
         !Rf_inherits(x, "row_file");
}

std::unique_ptr<RowSource> row_source(SEXP x,
                                      const std::vector<std::int32_t>& features,
                                      bool fill) {
  std::unique_ptr<RowSource> source = row_source(x);
  if (!features.empty())
    source.reset(new FeatureSubset(std::move(source), features));
  if (fill) source.reset(new MeanFilled(std::move(source)));
  return source;
}

std::unique_ptr<RowSource> row_source(SEXP x, const Rcpp::List& request) {
  return row_source(x, features_of(request), fills(x, request));
}

Request request_from(const Rcpp::List& request) {
  Request r;
  if (!Rf_isNull(request["k"])) r.k = Rcpp::as<int>(request["k"]);
  r.metric = &find_metric(Rcpp::as<std::string>(request["metric"]),
                          Rcpp::as<std::string>(request["sign"]));
  if (request.containsElementNamed("allele_table")) {
    const Rcpp::NumericVector table = request["allele_table"];
    MetricEntry own = *r.metric;
    own.table.multiplier = table["multiplier"];
    own.table.parameter = table["parameter"];
    r.table_entry = std::make_shared<const MetricEntry>(own);
    r.metric = r.table_entry.get();
  }
  r.skip = zero_based(request["skip"]);
  r.query_skip = zero_based(request["query_skip"]);
  r.num_threads = Rcpp::as<int>(request["num_threads"]);
  r.chunk_size = Rcpp::as<int>(request["chunk_size"]);
  r.max_device_memory = Rcpp::as<double>(request["max_device_memory"]);
  r.max_memory = Rcpp::as<double>(request["max_memory"]);
  r.largest = Rcpp::as<double>(request["largest"]);
  if (request.containsElementNamed("weights") && !Rf_isNull(request["weights"]))
    r.weights = std::make_shared<SampleWeights>(
        Rcpp::as<std::vector<double>>(request["weights"]));
  r.groups = groups_from(request);
  r.covariates = covariates_from(request, r.weights.get());
  r.na_pairwise = Rcpp::as<std::string>(request["na"]) == "pairwise";
  r.min_pairs = Rcpp::as<int>(request["min_pairs"]);
  r.instruction_set = Rcpp::as<std::string>(request["instruction_set"]);
  for (const std::int64_t device : zero_based(request["devices"]))
    r.devices.push_back(static_cast<int>(device));
  return r;
}

Question::Question(SEXP x, SEXP query, const Rcpp::List& list)
    : held(held_points(x)),
      read(held != nullptr ? nullptr : row_source(x, list)),
      points(held != nullptr ? &held->choose_features(features_of(list))
                             : read.get()),
      request(request_from(list)),
      subset(subset_of(*points, list, request)),
      queries(Rf_isNull(query) ? nullptr : row_source(query, list)) {
  if (queries != nullptr) {
    request.query_self = query_self_of(list);
    const std::size_t asked = request.query_self.size();
    if (asked > 0 && asked != static_cast<std::size_t>(queries->num_points()))
      throw std::invalid_argument("each query is one point, or none");
  }
  if (request.weights != nullptr &&
      request.weights->num_features() != points->num_features())
    throw std::invalid_argument("there must be a weight for each feature");
  if (request.covariates != nullptr &&
      request.covariates->num_features() != points->num_features())
    throw std::invalid_argument("covariates must have a row for each feature");
}

Rcpp::List list_of(const CudaFailure& e) {
  const int row = cuda::row_of_device(e.device);
  Rcpp::List out = failure("cuda", e.what());
  out["device"] = row < 0 ? NA_INTEGER : row + 1;
  out["cuda_id"] = e.device < 0 ? NA_INTEGER : e.device;
  out["bytes_asked"] = e.bytes_asked > 0 ? e.bytes_asked : NA_REAL;
  out["bytes_free"] = e.bytes_asked > 0 ? e.bytes_free : NA_REAL;
  out["cuda_words"] = e.cuda_words;
  out["where"] = e.where;
  out["sticky"] = e.sticky;
  return out;
}

static const char* name_of(BackendFailure::Why why) {
  using Why = BackendFailure::Why;
  switch (why) {
    case Why::not_built: return "not_built";
    case Why::no_driver: return "no_driver";
    case Why::old_driver: return "old_driver";
    case Why::driver_mismatch: return "driver_mismatch";
    case Why::no_device: return "no_device";
    case Why::other_devices: return "other_devices";
    case Why::forked: return "forked";
    case Why::lost: return "lost";
    case Why::failed: return "failed";
    case Why::no_such_device: return "no_such_device";
  }
  throw_unknown("reason", static_cast<int>(why));
}

Rcpp::List list_of(const BackendFailure& e) {
  Rcpp::List out = failure("backend", e.what());
  out["why"] = name_of(e.why);
  out["cuda_words"] = e.cuda_words;
  out["detail"] = e.detail;
  out["driver"] = e.driver;
  out["runtime"] = e.runtime;
  out["device"] = e.device + 1;
  return out;
}

Rcpp::List list_of(const Stats& stats) {
  return Rcpp::List::create(
      Rcpp::_["pairs_filtered"] = stats.pairs_filtered,
      Rcpp::_["pairs_pruned"] = stats.pairs_pruned,
      Rcpp::_["pairs_exact"] = stats.pairs_exact,
      Rcpp::_["rows_recomputed"] = stats.rows_recomputed,
      Rcpp::_["rows_widened"] = stats.rows_widened,
      Rcpp::_["rows_short"] = stats.rows_short,
      Rcpp::_["seconds_prepare"] = stats.seconds_prepare,
      Rcpp::_["seconds_search"] = stats.seconds_search,
      Rcpp::_["seconds_emit"] = stats.seconds_emit,
      Rcpp::_["seconds_device"] = stats.seconds_device,
      Rcpp::_["bytes_device"] = stats.bytes_device,
      Rcpp::_["num_devices"] = stats.num_devices,
      Rcpp::_["filtered"] = stats.filter != FilterNumbers::none,
      Rcpp::_["filter_bits"] = bits_of(stats.filter),
      Rcpp::_["filter_form"] = static_cast<int>(stats.filter),
      Rcpp::_["streamed"] = stats.streamed);
}

Rcpp::DataFrame table_of(const std::vector<cuda::Device>& found) {
  const int n = static_cast<int>(found.size());
  Rcpp::IntegerVector device(n), cuda_id(n), multiprocessors(n);
  Rcpp::CharacterVector name(n), capability(n);
  Rcpp::NumericVector total(n), free(n);
  for (int i = 0; i < n; ++i) {
    const cuda::Device& d = found[static_cast<std::size_t>(i)];
    device[i] = cuda::row_of_device(d.cuda_id) + 1;
    cuda_id[i] = d.cuda_id;
    name[i] = d.name;
    capability[i] = std::to_string(d.major) + "." + std::to_string(d.minor);
    total[i] = d.bytes_total;
    free[i] = d.bytes_free < 0 ? NA_REAL : d.bytes_free;
    multiprocessors[i] = d.multiprocessors;
  }
  return Rcpp::DataFrame::create(
      Rcpp::_["device"] = device, Rcpp::_["cuda_id"] = cuda_id,
      Rcpp::_["name"] = name, Rcpp::_["compute_capability"] = capability,
      Rcpp::_["memory_total"] = total, Rcpp::_["memory_free"] = free,
      Rcpp::_["multiprocessors"] = multiprocessors,
      Rcpp::_["stringsAsFactors"] = false);
}

SEXP new_bar(const std::string& what) {
  SEXP bar = PROTECT(cli_progress_bar(1.0, R_NilValue));
  cli_progress_set_name(bar, what.c_str());
  UNPROTECT(1);
  return bar;
}

void set_bar(SEXP bar, double done) {
  if (CLI_SHOULD_TICK) cli_progress_set(bar, done);
}

void end_bar(SEXP bar) { cli_progress_done(bar); }

std::unique_ptr<Progress> r_progress(bool draw, const char* what) {
  return std::unique_ptr<Progress>(new RProgress(draw, what));
}

std::unique_ptr<Progress> r_progress(const Rcpp::List& request) {
  std::unique_ptr<RProgress> progress(
      new RProgress(Rcpp::as<bool>(request["progress"]), "Nearest neighbours"));
  const auto given = [&](const char* name) {
    return request.containsElementNamed(name) && !Rf_isNull(request[name]);
  };
  if (given("bar")) {
    const Rcpp::NumericVector share = request["share"];
    progress->share_bar(request["bar"], share[0], share[1]);
  }
  if (given("watch")) progress->watch(Rcpp::as<std::string>(request["watch"]));
  return progress;
}

SEXP new_vector(SEXPTYPE type, std::int64_t length) {
  // R_tryCatchError() runs R code, which takes longer than reading a small
  // file. Rcpp also allocates small vectors without it.
  if (length <= 1024)
    return Rf_allocVector(type, static_cast<R_xlen_t>(length));
  Allocation what = {type, static_cast<R_xlen_t>(length)};
  const SEXP v = R_tryCatchError(allocate, &what, no_memory, nullptr);
  if (v == R_NilValue)
    throw MemoryFailure(static_cast<double>(length) * (type == INTSXP ? 4 : 8));
  return v;
}

Rcpp::List guarded(const std::function<Rcpp::List()>& work) {
  // An R error in an earlier call may have skipped the destructor of a
  // Listening.
  const Listening nobody(nullptr);
  try {
    return work();
  } catch (const Interrupted& e) {
    return failure("interrupt", e.what());
  } catch (const RangeFailure& e) {
    return failure("range", e.what());
  } catch (const MemoryFailure& e) {
    Rcpp::List out = failure("memory", e.what());
    out["bytes_asked"] = e.bytes_asked;
    return out;
  } catch (const DiskFailure& e) {
    Rcpp::List out = failure("disk", e.what());
    out["bytes_asked"] = e.bytes_asked;
    out["bytes_free"] = e.bytes_free;
    return out;
  } catch (const std::bad_alloc& e) {
    Rcpp::List out = failure("memory", "not enough memory");
    out["bytes_asked"] = NA_REAL;
    return out;
  } catch (const HandleFailure& e) {
    Rcpp::List out = failure("handle", e.what());
    switch (e.why) {
      case HandleFailure::Why::gone: out["why"] = "gone"; break;
      case HandleFailure::Why::forked: out["why"] = "forked"; break;
      case HandleFailure::Why::pairwise: out["why"] = "pairwise"; break;
    }
    return out;
  } catch (const FileFailure& e) {
    Rcpp::List out = failure("file", e.words);
    out["path"] = e.path;
    return out;
  } catch (const BackendFailure& e) {
    return list_of(e);
  } catch (const PlanFailure& e) {
    Rcpp::List out = list_of(e);
    switch (e.held) {
      case PlanFailure::Held::two_chunks: out["held"] = "two_chunks"; break;
      case PlanFailure::Held::all_points: out["held"] = "all_points"; break;
      case PlanFailure::Held::triples: out["held"] = "triples"; break;
    }
    return out;
  } catch (const CudaFailure& e) {
    return list_of(e);
  } catch (const std::exception& e) {
    return failure("internal", e.what());
  }
}

Rcpp::List with_files(const std::function<Rcpp::List()>& work) {
  return guarded([&] {
    const std::unique_ptr<Progress> progress = r_progress(false);
    return work();
  });
}

}  // namespace bind
}  // namespace fsknn
