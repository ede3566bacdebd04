#include "cuda/search/rerank_phase.hpp"

#include <algorithm>

#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {
namespace {

// An entry of a list that is written: distance, correlation, number.
constexpr std::int64_t kListDoubles = 3;

/// Returns the most pairs of the host's in any range of this many points.
std::int64_t most_pairs_of(const WaitingList& list, std::int64_t num_points,
                           std::int64_t row_range) {
  std::int64_t most = 0;
  for (std::int64_t p = 0; list.on_host() && p < num_points; p += row_range)
    most = std::max(most, list.pairs_of(list.before(Place{p}),
                                        list.before(Place{p + row_range})));
  return most;
}

/// Returns how many points stay at a time: as many as fit beside the other
/// memory.
std::int64_t rows_that_stay(const PanelsPart& part, const Unranked& unranked) {
  const std::int64_t n = part.num_points();
  const double owned = static_cast<double>(part.layout.num_owned());
  const double held = part.shape().bytes_fixed + 4 * static_cast<double>(n) +
                      16 * owned + unranked.pairs.bytes_of_pairs() +
                      unranked.wide_pairs.bytes_of_pairs() +
                      16 * static_cast<double>(unranked.wide_own.size());
  const double row_bytes =
      static_cast<double>(part.search.columns.padded) * 8 + 12;
  const double room = part.shape().bytes_usable - held;
  const auto equal = [&](std::int64_t stay) {
    // Equal ranges need the fewest copies.
    const std::int64_t row_ranges = (n + stay - 1) / stay;
    return std::min(stay, whole_tiles((n + row_ranges - 1) / row_ranges));
  };
  // The host's pairs may belong to few points, which all stay.
  const std::int64_t least =
      unranked.pairs.on_host()
          ? kChunkUnit
          : std::min(whole_tiles(n), part.shape().stream_rows);
  std::int64_t stay =
      static_cast<std::int64_t>(room / row_bytes) / kChunkUnit * kChunkUnit;
  stay = equal(std::min(whole_tiles(n), std::max(stay, least)));
  // Leaves room for the copy of their pairs from the host.
  while (stay > least &&
         static_cast<double>(stay) * row_bytes +
                 12.0 * static_cast<double>(
                            most_pairs_of(unranked.pairs, n, stay) +
                            most_pairs_of(unranked.wide_pairs, n, stay)) >
             room)
    stay = equal(std::max(least, stay * 31 / 32 / kChunkUnit * kChunkUnit));
  return stay;
}

/// Returns whether this many rows' lists of k fit in the memory of the points
/// that stay.
bool written_from(const PanelBuffer& stay, std::int64_t rows, std::int64_t k) {
  return stay.size() / (kListDoubles * k) >= rows;
}

/// Returns the number of rows whose lists are written at a time.
std::int64_t rows_written(const PanelsPart& part, const PanelBuffer& stay) {
  const std::int64_t planned = part.shape().write_rows;
  const std::int64_t fit = stay.size() / (kListDoubles * part.search.plan.k);
  if (!part.shape().by_row_ranges())
    return fit < planned ? planned
                         : std::min(fit, whole_tiles(part.num_points()));
  // Writes fewer rows than planned, rather than use memory that the plan lacks,
  // unless not even a chunk unit fits.
  return fit < kChunkUnit ? planned : std::min(fit, planned);
}

}  // namespace

RerankPhase::RerankPhase(const PanelsPart& part, Unranked& unranked)
    : part_(part),
      unranked_(unranked),
      panel_ids_(part.num_points()),
      wide_own_(static_cast<std::int64_t>(unranked.wide_own.size())),
      stay_(rows_that_stay(part, unranked), part.search.columns.padded),
      write_rows_(rows_written(part, stay_)),
      own_lists_(written_from(stay_, write_rows_, part.search.plan.k)
                     ? 0
                     : write_rows_ * kListDoubles * part.search.plan.k),
      answer_(part.search.out, write_rows_, part.search.plan.k,
              threads_of(part.search)) {
  upload(panel_ids_, part.search.in_panels->order.id.data(), panel_ids_.size(),
         part.stream);
  if (wide_own_.size() > 0)
    upload(wide_own_, unranked.wide_own.data(), wide_own_.size(), part.stream);
  for (WaitingList* const list : {&unranked.pairs, &unranked.wide_pairs})
    list->hold_room(most_pairs_of(*list, part.num_points(), stay_.most_rows()));
}

RerankPhase::~RerankPhase() {
  part_.panels.from.wait();
  cudaStreamSynchronize(part_.stream.get());
}

bool RerankPhase::run() {
  const std::int64_t n = part_.num_points(), stay = stay_.most_rows();
  for (std::int64_t first = 0; first < n; first += stay) {
    part_.panels.from.fetch(Place{first}, std::min(stay, n - first), stay_);
    const Panel panel = stay_.get(part_.stream);
    if (!rerank(panel)) return false;
    write_out(panel);
    stay_.release(part_.stream);
  }
  return true;
}

/// Computes its points' pairs with each other, and with those of all later
/// panels.
bool RerankPhase::rerank(const Panel& panel) {
  const MetricEntry& metric = *part_.search.request.metric;
  const cudaStream_t stream = part_.stream.get();
  const auto side = [&](WaitingList& list, const Panel& rows,
                        const Panel& columns, bool stays) {
    Reranking reranking;
    reranking.padded = part_.search.columns.padded;
    reranking.undo = part_.search.undo;
    reranking.rows = rows;
    reranking.columns = columns;
    reranking.pairs = stays ? list.held() : list.view();
    reranking.first_owned = list.before(rows.first);
    reranking.end_owned = list.before(rows.end());
    return reranking;
  };
  std::vector<WaitingList*> lists(1, &unranked_.pairs);
  if (!unranked_.wide_own.empty()) lists.push_back(&unranked_.wide_pairs);
  for (WaitingList* const list : lists) {
    list->hold(list->before(panel.first), list->before(panel.end()),
               part_.stream);
    start_reranking(metric, side(*list, panel, panel, true), stream);
  }
  return for_panels(
      part_.panels, part_.stream,
      [&](const Panel& other) {
        for (WaitingList* const list : lists)
          start_reranking(metric, side(*list, other, panel, false),
                          side(*list, panel, other, true), stream);
        return part_.workers.go_on();
      },
      panel.end());
}

/// Writes the neighbours of the panel's points, all of whose pairs are
/// computed.
void RerankPhase::write_out(const Panel& panel) {
  const std::int64_t k = part_.search.plan.k;
  double* const distances =
      own_lists_.size() > 0 ? own_lists_.data() : stay_.memory();
  double* const correlations = distances + write_rows_ * k;
  const std::int64_t end = unranked_.pairs.before(panel.end());
  for (std::int64_t own = unranked_.pairs.before(panel.first); own < end;
       own += write_rows_) {
    Ranking ranking;
    ranking.first_owned = own;
    ranking.end_owned = std::min(own + write_rows_, end);
    ranking.ids = panel_ids_.data();
    ranking.nearest.distance = distances;
    ranking.nearest.index =
        reinterpret_cast<std::int32_t*>(correlations + write_rows_ * k);
    ranking.nearest.k = k;
    ranking.correlation =
        part_.search.out.correlation != nullptr ? correlations : nullptr;
    start_ranking_all(ranking);
    send_redone(ranking);
    CorrelationOf given;
    given.given = correlations;
    answer_.write(ranking.nearest, ranking.end_owned - own,
                  part_.layout.row_ids.data() + own, given, part_.stream);
  }
}

/// Ranks owned points' lists from their pairs.
void RerankPhase::start_ranking_all(const Ranking& row_range) {
  const MetricEntry& metric = *part_.search.request.metric;
  Ranking ranking = row_range;
  ranking.pairs = unranked_.pairs.held();
  ranking.most_pairs = unranked_.pairs.most_pairs();
  start_ranking(metric, ranking, part_.stream.get());
  // Overwrites the empty lists of points that were filtered again.
  const auto before = [&](std::int64_t own) {
    return std::lower_bound(unranked_.wide_own.begin(),
                            unranked_.wide_own.end(), own) -
           unranked_.wide_own.begin();
  };
  ranking.pairs = unranked_.wide_pairs.held();
  ranking.most_pairs = unranked_.wide_pairs.most_pairs();
  ranking.first_owned = before(row_range.first_owned);
  ranking.end_owned = before(row_range.end_owned);
  ranking.rows = wide_own_.data();
  ranking.first_row = row_range.first_owned;
  start_ranking(metric, ranking, part_.stream.get());
}

/// Overwrites those of points that were computed in doubles.
void RerankPhase::send_redone(const Ranking& ranking) {
  const std::vector<std::int64_t>& redone = unranked_.redone;
  const RowsInDoubles& lists = unranked_.redone_lists;
  const std::int64_t k = ranking.nearest.k;
  const auto copy = [&](auto* to, std::int64_t row, const auto& from,
                        std::size_t which) {
    CUDA_CHECK(cudaMemcpyAsync(
        to + row * k, from.data() + which * static_cast<std::size_t>(k),
        static_cast<std::size_t>(k) * sizeof(*to), cudaMemcpyHostToDevice,
        part_.stream.get()));
  };
  const auto first =
      std::lower_bound(redone.begin(), redone.end(), ranking.first_owned);
  for (auto it = first; it != redone.end() && *it < ranking.end_owned; ++it) {
    const std::size_t which = static_cast<std::size_t>(it - redone.begin());
    const std::int64_t row = *it - ranking.first_owned;
    copy(ranking.nearest.distance, row, lists.distance, which);
    copy(ranking.nearest.index, row, lists.index, which);
    if (ranking.correlation != nullptr)
      copy(ranking.correlation, row, lists.correlation, which);
  }
}

}  // namespace cuda
}  // namespace fsknn
