// The C interface for other packages, inst/include/fsknn.h: checks a request,
// and calls an engine.

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "../inst/include/fsknn.h"
#include "bind_common.hpp"
#include "core/base/poll.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;

namespace {

constexpr int kMostThreads = 1024;  // max_num_threads in R
std::thread::id main_thread;

void require(bool holds, const std::string& words) {
  if (!holds) throw std::invalid_argument(words);
}

void require_between(const char* name, int value, int least, int most) {
  require(value >= least && value <= most,
          "`" + std::string(name) + "` must be between " +
              std::to_string(least) + " and " + std::to_string(most) +
              ", not " + std::to_string(value) + ".");
}

std::string text_or(const char* given, const char* otherwise) {
  return given != nullptr ? given : otherwise;
}

// From the entry of the metric, as in R's table (R/search-metrics.R); a test
// compares them.
bool must_vary(const MetricEntry& metric) {
  switch (metric.row_form) {
    case RowForm::centred_unit:
    case RowForm::ranked:
    case RowForm::biweight_unit: return true;
    case RowForm::unit:
    case RowForm::raw:
    case RowForm::ready: return false;
  }
  throw_unknown("form", static_cast<int>(metric.row_form));
}

/// Throws if there are such values or points; one of them is `at`.
void refuse(const char* name, const char* what, std::int64_t count,
            std::int64_t at) {
  require(count == 0, "`" + std::string(name) + "` must not have " + what +
                          ": " + std::to_string(count) +
                          " found, for instance at point " +
                          std::to_string(at + 1) + ".");
}

void refuse(const char* name, const char* what, std::int64_t count,
            const std::vector<Position>& at) {
  if (count > 0) refuse(name, what, count, at[0].point);
}

void refuse(const char* name, const char* what,
            const std::vector<std::int64_t>& points) {
  if (!points.empty())
    refuse(name, what, static_cast<std::int64_t>(points.size()), points[0]);
}

/// Returns the largest magnitude. Throws if a value is not allowed.
double check_values(const char* name, const RowSource& rows,
                    const Request& request, Progress* progress) {
  const MetricEntry& metric = *request.metric;
  const int levels = metric.is_table() ? static_cast<int>(metric.table.copies)
                     : metric.filter == FilterKind::bits ? 1
                                                         : 0;
  const MatrixFacts facts =
      scan(rows, request.num_threads, progress, {metric.is_overlap(), levels});
  refuse(name, "values that are NA, NaN or infinite", facts.non_finite,
         facts.non_finite_at);
  refuse(name,
         levels == 2 ? "values other than 0, 1 and 2 under this metric"
                     : "values other than 0 and 1 under this metric",
         facts.off_levels, facts.off_levels_at);
  if (metric.is_overlap())
    refuse(name, "negative values under this metric", facts.negative,
           facts.negative_at);
  if (must_vary(metric))
    refuse(name, "constant points under this metric", facts.constant);
  if (metric.row_form == RowForm::unit || metric.is_overlap())
    refuse(name, "points of zeros only under this metric", facts.zero);
  return facts.largest;
}

void check_sizes(const fsknn_request& asked) {
  const int alone = asked.queries == nullptr ? 1 : 0;
  constexpr int most = std::numeric_limits<int>::max();
  require(asked.points != nullptr && asked.metric != nullptr &&
              asked.index != nullptr && asked.distance != nullptr,
          "`points`, `metric`, `index` and `distance` must not be NULL.");
  require_between("num_points", asked.num_points, 1 + alone, most);
  require_between("num_features", asked.num_features, 1, most);
  if (alone == 0) require_between("num_queries", asked.num_queries, 1, most);
  require_between("k", asked.k, 1, asked.num_points - alone);
  require_between("num_threads", asked.num_threads, 0, kMostThreads);
}

const MetricEntry& metric_of(const fsknn_request& asked) {
  try {
    return find_metric(asked.metric, text_or(asked.sign, "signed"));
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument("There is " + std::string(e.what()) + ".");
  }
}

void find(const fsknn_request& asked) {
  require(std::this_thread::get_id() == main_thread,
          "Only R's main thread may search.");
  check_sizes(asked);
  const std::string backend = text_or(asked.backend, "cpu");
  require(backend == "cpu" || backend == "cuda",
          "`backend` must be \"cpu\" or \"cuda\", not \"" + backend + "\".");
  Request request;
  request.k = asked.k;
  request.metric = &metric_of(asked);
  request.num_threads = std::max(1, asked.num_threads);

  const std::unique_ptr<Progress> progress = bind::r_progress(false);
  const MatrixSource<double> points(asked.points, asked.num_points,
                                    asked.num_features);
  const MatrixSource<double> queries(asked.queries, asked.num_queries,
                                     asked.num_features);
  const bool alone = asked.queries == nullptr;
  request.largest = check_values("points", points, request, progress.get());
  if (!alone)
    request.largest =
        std::max(request.largest,
                 check_values("queries", queries, request, progress.get()));

  Neighbours answer;
  answer.rows = alone ? asked.num_points : asked.num_queries;
  answer.index = asked.index;
  answer.distance = asked.distance;
  Stats stats;
  (backend == "cuda" ? cuda::find_neighbours : cpu::find_neighbours)(
      request, points, alone ? nullptr : &queries, answer, progress.get(),
      &stats);
}

/// Returns the status of a failure that is being handled, and its words.
int status_of_failure(std::string& words) {
  try {
    throw;
  } catch (const Interrupted&) {
    words = "The user interrupted the search.";
    return FSKNN_INTERRUPTED;
  } catch (const std::invalid_argument& e) {
    words = e.what();
    return FSKNN_ARGUMENT;
  } catch (const RangeFailure&) {
    words = "A distance is beyond the range of a double.";
    return FSKNN_RANGE;
  } catch (const MemoryFailure&) {
    words = "There is not enough memory.";
    return FSKNN_MEMORY;
  } catch (const std::bad_alloc&) {
    words = "There is not enough memory.";
    return FSKNN_MEMORY;
  } catch (const BackendFailure&) {
    words = "Backend \"cuda\" can't be used. R's knn_backends() says why.";
    return FSKNN_BACKEND;
  } catch (const PlanFailure&) {
    words = "The GPU has not enough memory.";
    return FSKNN_BACKEND;
  } catch (const CudaFailure& e) {
    words = "CUDA failed: " + e.cuda_words + ".";
    return FSKNN_BACKEND;
  } catch (const std::exception& e) {
    words = std::string("The search failed: ") + e.what() + ".";
    return FSKNN_FAILED;
  }
}

/// The function behind fsknn_find().
extern "C" int find_for_c(const fsknn_request* asked, char* message,
                          std::size_t message_size) noexcept {
  const Listening nobody(nullptr);  // as in bind::guarded()
  int status = FSKNN_OK;
  std::string words;
  try {
    // Later versions may change all but the first member.
    if (asked->version == FSKNN_VERSION) {
      find(*asked);
    } else {
      status = FSKNN_OTHER_VERSION;
      words = "The caller was compiled with version " +
              std::to_string(asked->version) + " of fsknn.h, but fsknn has " +
              std::to_string(FSKNN_VERSION) +
              ". Install the calling package again.";
    }
  } catch (...) {
    try {
      status = status_of_failure(words);
    } catch (...) {
      status = FSKNN_FAILED;
    }
  }
  if (message != nullptr && message_size > 0)
    std::snprintf(message, message_size, "%s", words.c_str());
  return status;
}

}  // namespace

// [[Rcpp::init]]
void register_for_c(DllInfo* dll) {
  (void)dll;
  main_thread = std::this_thread::get_id();
  // R stores any function as a DL_FUNC. GCC warns of a cast to another type
  // unless it goes through this one.
  const auto any = reinterpret_cast<void (*)()>(&find_for_c);
  R_RegisterCCallable("fsknn", "fsknn_find", reinterpret_cast<DL_FUNC>(any));
}
