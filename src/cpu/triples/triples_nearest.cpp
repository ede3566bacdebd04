// Finds the triples of each point with the largest similarity.
#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>

#include "core/base/pieces.hpp"
#include "cpu/triples/triples.hpp"
#include "cpu/triples/triples_apex.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// Whether a comes before b.
bool is_nearer(const TripleOfPoint& a, const TripleOfPoint& b) {
  if (a.similarity != b.similarity) return a.similarity > b.similarity;
  return a.second != b.second ? a.second < b.second : a.third < b.third;
}

/// Keeps the first k of the offered triples.
class TripleHeap {
 public:
  explicit TripleHeap(std::int64_t k) : k_(static_cast<std::size_t>(k)) {}
  void clear() { entries_.clear(); }
  /// The similarity below which no triple is taken.
  double least() const {
    return entries_.size() < k_ ? 0.0 : entries_.front().similarity;
  }
  /// Returns whether the triple was taken.
  bool offer(const TripleOfPoint& entry) {
    if (entries_.size() < k_) {
      entries_.push_back(entry);
    } else {
      if (!is_nearer(entry, entries_.front())) return false;
      std::pop_heap(entries_.begin(), entries_.end(), &is_nearer);
      entries_.back() = entry;
    }
    std::push_heap(entries_.begin(), entries_.end(), &is_nearer);
    return true;
  }
  const std::vector<TripleOfPoint>& entries() const { return entries_; }

 private:
  const std::size_t k_;
  std::vector<TripleOfPoint> entries_;
};

/// The number of points with at least twice k pairs: at least 8, or all others.
std::int64_t num_seeds(std::int64_t k, std::int64_t others) {
  std::int64_t wanted = 8;
  while (wanted * (wanted - 1) / 2 < 2 * k) ++wanted;
  return std::min(wanted, others);
}

class NearestWorker {
 public:
  NearestWorker(const TripleRows& rows, const ApexPieces& pieces,
                TriplePath path, std::int64_t k,
                std::vector<std::vector<TripleOfPoint>>& lists,
                std::mutex& lock)
      : rows_(rows),
        pieces_(pieces),
        path_(path),
        k_(k),
        lists_(lists),
        lock_(lock),
        pass_(rows),
        heap_(k),
        is_seed_(static_cast<std::size_t>(rows.size()), 0) {}

  void operator()(std::int64_t piece) {
    apex_ = pieces_.apex(piece);
    const TripleOwners own(rows_.points(),
                           {rows_.points().order.id_at(Place{apex_}).value});
    heap_.clear();
    take_seeds(own);
    const TripleBound bound = bound_now();
    pass_.choose(own, path_ == TriplePath::all ? nullptr : &bound);
    share_ = float_above(bound.share);
    pass_.tiles(
        pieces_.part(piece), pieces_.parts, [](std::int64_t) { return true; },
        [&](const ApexPass::Tile& tile) { take(tile); });
    for (const std::int64_t seed : seeds_)
      is_seed_[static_cast<std::size_t>(seed)] = 0;
    hand_over();
  }
  const TripleStats& finish() {
    stats_.comparisons = pass_.comparisons();
    stats_.candidates = stats_.reranked;
    return stats_;
  }

 private:
  TripleBound bound_now() const {
    return TripleBound(heap_.least(), rows_.points().padded);
  }

  void offer(std::int64_t j, std::int64_t k) {
    const PointOrder& order = rows_.points().order;
    stats_.reranked += 1;
    poll_after(static_cast<double>(rows_.steps()));
    if (heap_.offer({order.id_at(Place{j}).value, order.id_at(Place{k}).value,
                     rows_.similarity(apex_, j, k)}))
      share_ = float_above(bound_now().share);
  }

  /// Starts with triples of the points most similar to the apex, so that the
  /// limit soon excludes most others.
  void take_seeds(const TripleOwners& own) {
    pass_.enter(apex_, own);
    seeds_.clear();
    for (std::int64_t p = 0; p < rows_.size(); ++p)
      if (p != apex_) seeds_.push_back(p);
    const std::int64_t count =
        num_seeds(k_, static_cast<std::int64_t>(seeds_.size()));
    const auto unlike = [&](std::int64_t p) {
      return static_cast<double>(pass_.pair_sum(p)) /
             std::max(rows_.scaled_sum(apex_) + rows_.scaled_sum(p), 1e-300);
    };
    std::partial_sort(seeds_.begin(), seeds_.begin() + count, seeds_.end(),
                      [&](std::int64_t a, std::int64_t b) {
                        const double x = unlike(a), y = unlike(b);
                        return x != y ? x < y : a < b;
                      });
    seeds_.resize(static_cast<std::size_t>(count));
    std::sort(seeds_.begin(), seeds_.end());
    for (const std::int64_t seed : seeds_)
      is_seed_[static_cast<std::size_t>(seed)] = 1;
    for (std::size_t a = 0; a < seeds_.size(); ++a)
      for (std::size_t b = a + 1; b < seeds_.size(); ++b)
        offer(seeds_[a], seeds_[b]);
  }

  void take(const ApexPass::Tile& tile) {
    std::uint32_t keep[TripleTile::rows];
    rows_.kernels().test(tile.sums, tile.most_of_rows, tile.most_of_columns,
                         share_, keep);
    for_kept(tile, keep, [&](std::int64_t j, std::int64_t k, int r, int c) {
      if (is_seed_[static_cast<std::size_t>(j)] != 0 &&
          is_seed_[static_cast<std::size_t>(k)] != 0)
        return;
      // The least similarity may have risen within the tile.
      const float most = tile.most_of_rows[r] + tile.most_of_columns[c];
      if (tile.sums[r * TripleTile::panel + c] <= share_ * most) offer(j, k);
    });
  }

  /// Merges the lists of an apex's parts. All of them have the seeds, which are
  /// kept once.
  void hand_over() {
    const std::lock_guard<std::mutex> held(lock_);
    std::vector<TripleOfPoint>& list = lists_[static_cast<std::size_t>(apex_)];
    list.insert(list.end(), heap_.entries().begin(), heap_.entries().end());
    std::sort(list.begin(), list.end(), &is_nearer);
    const auto same = [](const TripleOfPoint& a, const TripleOfPoint& b) {
      return a.second == b.second && a.third == b.third;
    };
    list.erase(std::unique(list.begin(), list.end(), same), list.end());
    if (list.size() > static_cast<std::size_t>(k_))
      list.resize(static_cast<std::size_t>(k_));
  }

  const TripleRows& rows_;
  const ApexPieces& pieces_;
  const TriplePath path_;
  const std::int64_t k_;
  std::vector<std::vector<TripleOfPoint>>& lists_;  ///< by place
  std::mutex& lock_;
  ApexPass pass_;
  TripleHeap heap_;
  std::vector<char> is_seed_;
  std::vector<std::int64_t> seeds_;
  std::int64_t apex_ = 0;
  float share_ = 0.0f;
  TripleStats stats_;
};

/// Uses a scanner. The k-th best of a point's triples with the points most
/// similar to it is a threshold that its k best triples reach.
class ScannedNearest {
 public:
  ScannedNearest(const Request& request, const PreparedPoints& points,
                 const TripleKernels& kernels, TripleScanner& scanner,
                 std::vector<std::vector<TripleOfPoint>>& lists)
      : request_(request),
        points_(points),
        metric_(metric_of(request, points)),
        kernels_(kernels),
        scanner_(scanner),
        lists_(lists) {}

  void run(const std::vector<std::int64_t>& apexes, TriplePath path,
           TripleStats& stats, Progress* progress) {
    TripleScanner::Task task;
    for (const std::int64_t apex : apexes)
      task.apexes.push_back({apex, 0, points_.size(), 0.0});
    // Each point is searched with all others, whichever points are requested.
    task.contained.assign(static_cast<std::size_t>(points_.size()), 0);
    set_thresholds(task, stats, progress);
    task.by_pairs = path != TriplePath::all;
    task.keep = request_.k;
    scanner_.find(
        task,
        [&](const std::vector<TripleHit>& hits) {
          for (const TripleHit& hit : hits) take(hit);
        },
        stats, progress);
    for (const std::int64_t apex : apexes) {
      std::vector<TripleOfPoint>& list = list_of(apex);
      keep_best(list);
      std::sort(list.begin(), list.end(), &is_nearer);
    }
  }

 private:
  std::vector<TripleOfPoint>& list_of(std::int64_t place) {
    return lists_[static_cast<std::size_t>(place)];
  }

  void set_thresholds(TripleScanner::Task& task, TripleStats& stats,
                      Progress* progress) const {
    const std::int64_t each = num_seeds(request_.k, points_.size() - 1);
    const std::vector<std::int32_t> seeds =
        scanner_.most_alike(task, each, progress);
    if (seeds.empty()) return;
    const double operations = static_cast<double>(task.apexes.size()) *
                              static_cast<double>(each * each) *
                              static_cast<double>(points_.padded);
    run_pieces(static_cast<std::int64_t>(task.apexes.size()),
               useful_threads(request_.num_threads, operations),
               {progress, 0.0, 0.0}, [&] {
                 return [&](std::int64_t a) {
                   TripleApex& apex = task.apexes[static_cast<std::size_t>(a)];
                   const std::int32_t* const own = seeds.data() + a * each;
                   std::vector<double> found;
                   for (std::int64_t i = 0; i < each; ++i)
                     for (std::int64_t j = i + 1; j < each; ++j) {
                       found.push_back(similarity(apex.apex, own[i], own[j]));
                       poll_after(static_cast<double>(points_.padded));
                     }
                   const std::size_t k = static_cast<std::size_t>(request_.k);
                   if (found.size() < k) return;
                   const auto at = found.begin() + (request_.k - 1);
                   std::nth_element(found.begin(), at, found.end(),
                                    std::greater<double>());
                   apex.least = *at;
                 };
               });
    stats.reranked += static_cast<double>(task.apexes.size()) *
                      static_cast<double>(each * (each - 1) / 2);
  }

  double similarity(std::int64_t a, std::int64_t b, std::int64_t c) const {
    const PreparedPoints& p = points_;
    if (metric_.is_table())
      return table_of_three(metric_, p, a, b, c).similarity;
    return similarity_of_three(kernels_.exact(p.row(Place{a}), p.row(Place{b}),
                                              p.row(Place{c}), p.padded),
                               p.sums[a], p.sums[b], p.sums[c]);
  }

  void take(const TripleHit& hit) {
    std::vector<TripleOfPoint>& list = list_of(hit.apex);
    list.push_back({points_.order.id_at(Place{hit.lower}).value,
                    points_.order.id_at(Place{hit.higher}).value,
                    hit.similarity});
    // Many triples may tie with the k-th.
    if (list.size() > 2 * static_cast<std::size_t>(request_.k) + 4096)
      keep_best(list);
  }

  void keep_best(std::vector<TripleOfPoint>& list) const {
    if (list.size() <= static_cast<std::size_t>(request_.k)) return;
    std::nth_element(list.begin(), list.begin() + request_.k, list.end(),
                     &is_nearer);
    list.resize(static_cast<std::size_t>(request_.k));
  }

  const Request& request_;
  const PreparedPoints& points_;
  const MetricEntry metric_;
  const TripleKernels& kernels_;
  TripleScanner& scanner_;
  std::vector<std::vector<TripleOfPoint>>& lists_;  ///< by place
};

}  // namespace

NearestTriples nearest_triples(const Request& request,
                               const std::vector<std::int32_t>& contains,
                               TriplePath path, const RowSource& source,
                               Progress* progress,
                               const MakeTripleScanner& given_scanner) {
  const Clock::time_point start = Clock::now();
  const MakeTripleScanner make_scanner = scanner_for(request, given_scanner);
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const PreparedPoints points = prepare_triples(
      request, source, kernels.prepare_row, request.num_threads, progress);
  const TripleOwners asked(points, contains);
  std::vector<std::vector<TripleOfPoint>> by_place(
      static_cast<std::size_t>(points.size()));
  NearestTriples found;
  if (make_scanner && !points.wide) {
    ScannedNearest(request, points, triple_kernels(kernels),
                   *make_scanner(request, points), by_place)
        .run(asked.apexes(), path, found.stats, progress);
  } else {
    const TripleRows rows(points, triple_kernels(kernels), request.num_threads,
                          progress);
    const int threads = triple_threads(request, points);
    const ApexPieces pieces(asked.apexes(), threads);
    std::mutex lock;
    run_pieces(
        pieces.size(), threads, {progress, 0.0, 1.0},
        [&] {
          return NearestWorker(rows, pieces, path, request.k, by_place, lock);
        },
        [](NearestWorker& worker, std::int64_t piece) { worker(piece); },
        [&](NearestWorker& worker) { found.stats.add(worker.finish()); });
  }
  const MetricEntry metric = metric_of(request, points);
  std::vector<std::int32_t> of = contains;
  for (std::int32_t i = 0;
       of.size() < points.order.place.size() && contains.empty(); ++i)
    of.push_back(i);
  for (const std::int32_t id : of) {
    const Place place = points.order.place_of(PointId{id});
    found.lists.emplace_back();
    if (place.none()) continue;
    found.lists.back() = by_place[static_cast<std::size_t>(place.value)];
    for (TripleOfPoint& t : found.lists.back()) {
      found.checksum +=
          checksum_of(Triple{id, t.second, t.third, t.similarity});
      if (metric.is_table())
        t.entry = table_of_three(metric, points, place.value,
                                 points.order.place_of(PointId{t.second}).value,
                                 points.order.place_of(PointId{t.third}).value)
                      .which;
    }
    found.stats.triples += static_cast<double>(found.lists.back().size());
  }
  found.stats.path =
      path == TriplePath::all ? TriplePath::all : TriplePath::pairs;
  found.stats.seconds = seconds_since(start);
  return found;
}

}  // namespace cpu
}  // namespace fsknn
