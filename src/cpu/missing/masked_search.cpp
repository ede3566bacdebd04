#include "cpu/missing/masked_search.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/missing/masked_pass.hpp"
#include "cpu/search/lists.hpp"

namespace fsknn {
namespace cpu {
namespace {

// For at most this many queries the exact step computes all pairs.
constexpr std::int64_t kFew = 16;

/// One search among points with missing values: as the engine's (engine.cpp),
/// but lists may stay short.
class MaskedSearch {
 public:
  MaskedSearch(const MaskedWork& work, const Plan& plan, Progress* progress)
      : work_(work),
        rows_(work.rows()),
        columns_(work.columns),
        self_(self_by_place(work.request, rows_.order)),
        progress_(progress),
        lists_(rows_.size(), work.request.k, columns_.size()),
        pass_(work, plan, rows_.size() > kFew, progress) {}

  void run() {
    pass_.run({progress_, 0.05, 1.0}, [&] { return Taker{*this}; });
  }

  /// Returns the number of rows with fewer than k neighbours.
  double emit(const Neighbours& out) {
    std::atomic<std::int64_t> rows_short{0};
    constexpr std::int64_t block_rows = 64;
    run_pieces(
        (out.rows + block_rows - 1) / block_rows, work_.request.num_threads,
        {progress_, 1.0, 1.0}, [&] {
          return [&, r = std::vector<double>()](std::int64_t block) mutable {
            const std::int64_t last =
                std::min(out.rows, (block + 1) * block_rows);
            for (std::int64_t i = block * block_rows; i < last; ++i)
              rows_short += emit_row(out, AnswerRow::of(i), r);
          };
        });
    return static_cast<double>(rows_short);
  }

  const MaskedPass& pass() const { return pass_; }

 private:
  struct Taker {
    void take(Place row, Place column, double value) {
      const double distance = s.work_.rule.distance(value);
      const PointId id = s.columns_.order.id_at(column);
      if (!s.is_self(row, id)) s.offer(row, distance, id);
      if (s.work_.symmetric)
        s.offer(column, distance, s.rows_.order.id_at(row));
    }
    void merge() {}
    MaskedSearch& s;
  };

  bool is_self(Place row, PointId id) const {
    return !self_.empty() &&
           self_[static_cast<std::size_t>(row.value)] == id.value;
  }

  void offer(Place row, double distance, PointId neighbour) {
    if (distance > lists_.limit(row) || !lists_.offer(row, distance, neighbour))
      return;
    pass_.set_threshold(row, lists_.limit(row));
  }

  bool emit_row(const Neighbours& out, AnswerRow row, std::vector<double>& r) {
    const std::int64_t k = work_.request.k;
    const Place place = {
        rows_.order.place[static_cast<std::size_t>(row.value)]};
    if (place.none()) {
      emit_missing(out, row, k);
      return false;
    }
    const std::int64_t size = lists_.sort(place);
    const std::int32_t* index = lists_.indices(place);
    if (out.correlation != nullptr) {
      r.resize(static_cast<std::size_t>(k));
      std::vector<Pair> pairs;
      for (std::int64_t rank = 0; rank < size; ++rank)
        pairs.push_back(
            {static_cast<std::int32_t>(place.value),
             columns_.order.place[static_cast<std::size_t>(index[rank])]});
      work_.kernels.masked(work_.rule.terms(), rows_.rows.data(),
                           columns_.rows.data(), columns_.padded, pairs.data(),
                           size, r.data());
      for (double& found : r) found = work_.rule.value(found);
    }
    emit_masked(out, row, k, size, lists_.distances(place), index, r.data());
    return size < k;
  }

  const MaskedWork& work_;
  const MaskedPoints& rows_;
  const MaskedPoints& columns_;
  const std::vector<std::int32_t> self_;  ///< of queries: the equal point
  Progress* progress_;
  NeighbourLists lists_;
  MaskedPass pass_;
};

}  // namespace

void find_masked(const Request& asked, const RowSource& points,
                 const RowSource* queries, const Neighbours& out,
                 Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const MaskedWork work(asked, points, queries, progress);
  if (work.empty()) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, AnswerRow::of(i), asked.k);
    return;
  }
  const Plan plan = work.plan();
  MaskedSearch search(work, plan, progress);
  tell_chosen(progress, {search.pass().numbers(), false});
  const double seconds_prepare = seconds_since(start);
  search.run();
  const double seconds_search = seconds_since(start) - seconds_prepare;
  const double rows_short = search.emit(out);
  if (stats == nullptr) return;
  stats->pairs_filtered = search.pass().counts().filtered;
  stats->filter = search.pass().numbers();
  stats->pairs_exact = search.pass().counts().exact;
  stats->rows_short = rows_short;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace cpu
}  // namespace fsknn
