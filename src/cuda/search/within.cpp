// Finds all pairs within a distance, on devices. It uses a filter if the points
// fit on them and few pairs are within, otherwise it computes every pair in the
// contract's doubles. Possible pairs go to the host, where they are counted,
// and then filled in (core/search/within.hpp).

#include <atomic>
#include <memory>
#include <stdexcept>

#include "core/base/pieces.hpp"
#include "core/search/within.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/search/engine.hpp"
#include "cuda/search/within_by_filter.hpp"
#include "cuda/search/within_chunks.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// One search.
class WithinSearch {
 public:
  WithinSearch(const Request& request, const Within& within,
               const RowSource& points, const RowSource* queries,
               WithinAnswer& answer, Progress* progress, PointStore* store)
      : request_(request),
        within_(within),
        source_(points),
        queries_(queries),
        answer_(answer),
        progress_(progress),
        store_(store),
        gpus_(request.devices),
        exponent_(
            common_exponent(request, points, queries, request.num_threads)),
        seconds_prepare_(seconds_since(start_)) {}

  void run() {
    if (by_filter()) return finish();
    check_sample(request_, within_, source_, queries_);
    in_doubles();
    finish();
  }

  Stats stats() const {
    Stats stats = found_;
    stats.bytes_device = gpus_.most_bytes();
    stats.seconds_prepare = seconds_prepare_;
    stats.seconds_search = seconds_search_;
    stats.seconds_emit =
        seconds_since(start_) - seconds_prepare_ - seconds_search_;
    return stats;
  }

 private:
  /// Points in the order in which they are searched.
  struct Placed {
    Placed(const WithinSearch& search, bool shuffle_points,
           bool shuffle_queries)
        : columns(search.source_, search.request_.skip, shuffle_points),
          graph(search.queries_ == nullptr) {
      if (!graph)
        own_rows = PlacedPoints(*search.queries_, search.request_.query_skip,
                                shuffle_queries);
    }
    const PlacedPoints& rows() const { return graph ? columns : own_rows; }
    bool empty() const { return rows().size() == 0 || columns.size() == 0; }
    PlacedPoints columns, own_rows;
    bool graph;
  };
  WithinWork work_of(const Placed& points) const {
    return {request_, within_, points.rows(), points.columns, exponent_};
  }

  GpuFacts facts() const {
    return facts_of(
        store_ != nullptr ? store_->as_if_free(gpus_.all()) : gpus_.all(),
        request_.max_device_memory);
  }

  /// Returns whether the filter completed the search.
  bool by_filter() {
    const GpuFacts devices = facts();
    const Placed points(*this, true, true);
    WithinWork work = work_of(points);
    const double usable = devices.bytes_usable();
    const auto fits = [&](const FilterChoice& filter) {
      work.filter = filter;
      return filter.usable() &&
             (usable <= 0 || bytes_by_filter(work, devices) <= usable);
    };
    const FilterChoice filter = filter_within(work, devices);
    FilterChoice roomy = filter;
    roomy.make_room_to_centre();
    if (!fits(roomy) && !fits(filter)) return false;
    PointStore own;
    work.store = store_ != nullptr ? store_ : &own;
    const std::int64_t row_blocks = ceil_div(work.rows.size(), kFilterBlock);
    const int count =
        static_cast<int>(std::min<std::int64_t>(gpus_.count(), row_blocks));
    work.num_threads = std::max(1, request_.num_threads / count);
    std::int64_t pieces = 0;
    for (int w = 0; w < count; ++w)
      pieces += WithinByFilter::num_pieces(work, w, count);
    std::atomic<bool> dense{false};
    begin();
    const bool done = passes(
        pieces, count,
        [&](bool first_pass) {
          return [&, first_pass](int w, Workers& workers) {
            WithinByFilter part(work, workers, w, count);
            part.run(*collector_, first_pass ? &dense : nullptr);
            return part.stats();
          };
        },
        &dense);
    if (!done) found_.filter = FilterNumbers::none;
    return done;
  }

  void in_doubles() {
    Placed points(*this, store_ != nullptr, false);
    begin();
    if (points.empty()) {
      collector_->allocate(answer_);
      return;
    }
    const double usable = facts().bytes_usable();
    std::unique_ptr<WithinWork> work(new WithinWork(work_of(points)));
    if (store_ != nullptr) {
      work->store = store_;
      work->side = side_beside_points(*work, gpus_, usable);
    }
    if (work->side == 0) {
      if (store_ != nullptr) {
        store_->clear();
        points = Placed(*this, false, false);
        work.reset(new WithinWork(work_of(points)));
      }
      work->side = side_in_panels(*work, usable, gpus_.id(0));
    }
    const int count = static_cast<int>(
        std::min<std::int64_t>(gpus_.count(), num_splits(*work)));
    work->num_threads = std::max(1, request_.num_threads / count);
    passes(num_chunks(*work), count, [&](bool) {
      const auto next = std::make_shared<std::atomic<std::int64_t>>(0);
      return [&, next](int, Workers& workers) {
        WithinInChunks part(*work, workers);
        part.run(*next, *collector_);
        return part.stats();
      };
    });
  }

  /// Resets the counts.
  void begin() {
    found_ = Stats();
    collector_.reset(new WithinCollector(
        request_, within_,
        (queries_ != nullptr ? *queries_ : source_).num_points(),
        queries_ == nullptr));
  }

  /// Makes one pass over all pairs or, if not all can be kept, two.
  /// make(first_pass): the work of each device. given_up (may be null): set if
  /// the first pass was useless. Returns whether it was not.
  template <class Make>
  bool passes(std::int64_t pieces, int count, Make make,
              const std::atomic<bool>* given_up = nullptr) {
    const auto pass = [&](double from, double to) {
      PartOfProgress part(progress_, from, to);
      Workers workers(progress_ != nullptr ? &part : nullptr, pieces);
      const auto work = make(from == 0.0);
      run_parts(workers, gpus_, count, found_,
                [&](int w) { return work(w, workers); });
    };
    pass(0.0, 0.5);
    if (given_up != nullptr && *given_up) return false;
    if (!collector_->allocate(answer_)) pass(0.5, 1.0);
    return true;
  }

  void finish() {
    seconds_search_ = seconds_since(start_) - seconds_prepare_;
    collector_->finish();
  }

  const Clock::time_point start_ = Clock::now();
  const Request& request_;
  const Within& within_;
  const RowSource& source_;
  const RowSource* const queries_;
  WithinAnswer& answer_;
  Progress* const progress_;
  PointStore* const store_;
  const UsedDevices gpus_;
  const int exponent_;
  const double seconds_prepare_;
  double seconds_search_ = 0.0;
  std::unique_ptr<WithinCollector> collector_;
  Stats found_;
};

/// store: null if points are not held between searches.
void find_pairs(const Request& asked, const Within& within,
                const RowSource& points, const RowSource* queries,
                WithinAnswer& answer, Progress* progress, Stats* stats,
                PointStore* store) {
  const Request request = suited(asked, points, queries, progress);
  if (!finds_within(request))
    throw std::logic_error("GPUs do not find what find_within() was asked for");
  check_metric(*request.metric);
  WithinSearch search(request, within, points, queries, answer, progress,
                      store);
  search.run();
  if (stats != nullptr) *stats = search.stats();
}

}  // namespace

void find_within(const Request& request, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats) {
  find_pairs(request, within, points, queries, answer, progress, stats,
             nullptr);
}

void find_within_with_store(const Request& request, const Within& within,
                            const RowSource& points, const RowSource* queries,
                            WithinAnswer& answer, Progress* progress,
                            Stats* stats, PointStore& store) {
  find_pairs(request, within, points, queries, answer, progress, stats, &store);
}

}  // namespace cuda
}  // namespace fsknn
