#include "cpu/triples.hpp"

#include <algorithm>
#include <memory>

#include "core/pieces.hpp"
#include "core/split_mix.hpp"
#include "cpu/prepared_pairs.hpp"
#include "cpu/triples_apex.hpp"
#include "cpu/triples_collect.hpp"
#include "cpu/triples_pairs.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Points of the sample that tells the pairs' share and the number of triples.
constexpr std::int64_t kSample = 96;

// Bytes that the pairs' graph may take where nothing is said.
constexpr double kGraphMemory = 4e9;

/// Triples that there are in the question's part, of all points.
double num_triples(const TripleOwners& owners, const TripleQuestion& q,
                   std::int64_t n) {
  double triples = 0;
  for (const std::int64_t i : owners.apexes()) {
    if (!is_in_stage(owners, q, i, 0)) continue;
    const double others = static_cast<double>(n - 1 - i);
    triples += others * (others - 1) / 2;
  }
  return triples;
}

/// What a sample of the points tells of all of them.
struct Sample {
  double pairs = 1.0;  ///< share of the pairs that triples can have
};

Sample look_at_sample(const TripleRows& rows, const TripleOwners& owners,
                      const TripleQuestion& q, const TripleBound& bound) {
  const PreparedPoints& points = rows.points();
  Sample sample;
  const std::int64_t n = points.size();
  if (n <= 2 * kSample) return sample;
  SplitMix random(2018);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(n));
  for (std::int64_t p = 0; p < n; ++p) chosen[static_cast<std::size_t>(p)] = p;
  for (std::int64_t s = 0; s < kSample; ++s)
    std::swap(chosen[static_cast<std::size_t>(s)],
              chosen[static_cast<std::size_t>(
                  s + random.below(static_cast<std::uint32_t>(n - s)))]);
  const auto sum = [&](std::int64_t s) {
    return points.sums[chosen[static_cast<std::size_t>(s)]];
  };
  const auto row = [&](std::int64_t s) {
    return points.row(Place{chosen[static_cast<std::size_t>(s)]});
  };
  double edges = 0, looked = 0, found = 0;
  DistanceTally tally;
  for (std::int64_t a = 0; a < kSample; ++a)
    for (std::int64_t b = a + 1; b < kSample; ++b) {
      const double largest =
          rows.kernels().exact(row(a), row(b), row(b), points.padded);
      looked += 1;
      const double least = largest / (sum(a) + sum(b));
      const bool is_edge = least <= 0.5 * (1.0 + bound.pair_distance);
      edges += is_edge ? 1 : 0;
      poll_after(static_cast<double>(points.padded));
      if (!owners.all() || !is_edge) continue;
      for (std::int64_t c = b + 1; c < kSample; ++c) {
        const double similarity = similarity_of_three(
            rows.kernels().exact(row(a), row(b), row(c), points.padded),
            total_of_three(sum(a), sum(b), sum(c)));
        poll_after(static_cast<double>(points.padded));
        if (!(similarity >= q.least)) continue;
        found += 1;
        tally.add(1.0 - similarity);
      }
    }
  sample.pairs = edges / looked;
  if (!owners.all()) return sample;
  const double all = num_triples(owners, q, n);
  const double share =
      found / (kSample * (kSample - 1.0) * (kSample - 2.0) / 6.0);
  // Points stand in triples together: the estimate is rough, and a threshold by
  // it is to have room enough.
  if (found >= 1000 && share * all > 10.0 * q.most) {
    const double of_sample = q.most / all * (found / share);
    // Infinite where those of similarity 1 are too many already.
    const double fits =
        threshold_that_fits(tally, std::max(1.0, of_sample / 4.0));
    throw TooManyTriples(share * all, true, q.most, fits);
  }
  return sample;
}

/// Whether to look for triangles. Costs in features of one triple, of which a
/// tile does 16 at a time.
bool takes_pairs(const TripleQuestion& q, const Sample& sample,
                 const TripleRows& rows) {
  if (rows.has_nearly_empty()) return false;
  if (q.path != TriplePath::automatic) return q.path == TriplePath::pairs;
  if (!(q.least > 0.75) || !q.contains.empty()) return false;
  const double d = static_cast<double>(rows.steps()) / 16, p = sample.pairs;
  return 2.0 * p * p + 4.0 * p * p * p * d < 0.8 * p * p * d + 0.05;
}

class AllPath {
 public:
  AllPath(const TripleRows& rows, const TripleOwners& owners,
          const TripleQuestion& question, const TripleBound& bound,
          const ApexPieces& pieces, TripleCollector& collector)
      : rows_(rows),
        owners_(owners),
        question_(question),
        bound_(bound),
        pieces_(pieces),
        share_(float_above(bound.share)),
        pass_(rows),
        taker_(collector) {}
  void operator()(std::int64_t piece) {
    const std::int64_t apex = pieces_.apex(piece);
    pass_.enter(apex, owners_);
    pass_.choose(owners_, &bound_);
    pass_.tiles(
        pieces_.part(piece), pieces_.parts,
        [&](std::int64_t j) {
          return is_in_stage(owners_, question_, apex, j);
        },
        [&](const ApexPass::Tile& tile) {
          std::uint32_t keep[TripleTile::rows];
          rows_.kernels().test(tile.sums, tile.most_of_rows,
                               tile.most_of_columns, share_, keep);
          for_kept(tile, keep, [&](std::int64_t j, std::int64_t k, int, int) {
            taker_.take(apex, j, k, rows_.similarity(apex, j, k));
            poll_after(static_cast<double>(rows_.steps()));
          });
        });
  }
  void merge() {
    taker_.stats.comparisons = pass_.comparisons();
    taker_.merge();
  }

 private:
  const TripleRows& rows_;
  const TripleOwners& owners_;
  const TripleQuestion& question_;
  const TripleBound& bound_;
  const ApexPieces& pieces_;
  const float share_;
  ApexPass pass_;
  TripleCollector::Taker taker_;
};

class PairsPath {
 public:
  PairsPath(const TripleRows& rows, const TripleOwners& owners,
            const TripleQuestion& question, const TripleBound& bound,
            const ApexPieces& pieces, const PairGraph& graph,
            TripleCollector& collector)
      : rows_(rows),
        owners_(owners),
        question_(question),
        pieces_(pieces),
        triangles_(graph, rows.points(), owners, bound),
        taker_(collector) {}
  void operator()(std::int64_t piece) {
    const std::int64_t apex = pieces_.apex(piece), part = pieces_.part(piece);
    triangles_.of(
        apex,
        [&](std::int64_t j) {
          return j % pieces_.parts == part &&
                 is_in_stage(owners_, question_, apex, j);
        },
        [&](std::int64_t j, std::int64_t k) {
          taker_.take(apex, j, k, rows_.similarity(apex, j, k));
          poll_after(static_cast<double>(rows_.steps()));
        });
  }
  void merge() {
    taker_.stats.comparisons =
        taker_.stats.settled * static_cast<double>(rows_.steps());
    taker_.stats.candidates = triangles_.looked_at();
    taker_.merge();
  }

 private:
  const TripleRows& rows_;
  const TripleOwners& owners_;
  const TripleQuestion& question_;
  const ApexPieces& pieces_;
  Triangles triangles_;
  TripleCollector::Taker taker_;
};

/// What the pairs of triples say of them.
std::vector<TriplePairs> pairs_of_all(const Request& request,
                                      const Kernels& kernels,
                                      const PreparedPoints& points,
                                      const std::vector<Triple>& triples) {
  std::vector<TriplePairs> found;
  found.reserve(triples.size());
  const auto place = [&](std::int32_t id) {
    return static_cast<std::int32_t>(points.order.place_of(PointId{id}).value);
  };
  for (const Triple& t : triples) {
    const std::int32_t a = place(t.from), b = place(t.to), c = place(t.third);
    const Pair pairs[] = {{a, b}, {a, c}, {b, c}};
    double sums[3];
    kernels.exact(Accumulation::smaller_sum, points.rows.data(),
                  points.rows.data(), points.padded, pairs, 3, sums);
    found.push_back(pairs_of(*request.metric, points, t, sums));
    poll_after(3.0 * static_cast<double>(points.padded));
  }
  return found;
}

}  // namespace

TriplesFound find_triples(const Request& request,
                          const TripleQuestion& question,
                          const RowSource& source, Progress* progress) {
  const Clock::time_point start = Clock::now();
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const PreparedPoints points = prepare_triples(
      request, source, kernels.prepare_row, request.num_threads, progress);
  const TripleRows rows(points, triple_kernels(kernels), request.num_threads,
                        progress);
  const TripleBound bound(question.least, points.padded);
  const TripleOwners owners(points, question.contains);
  const Sample sample = look_at_sample(rows, owners, question, bound);
  const int threads = triple_threads(request, points);
  const ApexPieces pieces(apexes_of(owners, question), threads);
  TripleCollector collector(points, question.least, question.most);
  std::unique_ptr<PairGraph> graph;
  if (takes_pairs(question, sample, rows)) {
    try {
      graph.reset(new PairGraph(
          request, source, points, bound,
          request.max_memory > 0 ? request.max_memory : kGraphMemory, nullptr));
    } catch (const MemoryFailure&) {
      if (question.path == TriplePath::pairs) throw;
    }
  }
  const Stretch stretch = {progress, 0.0, 1.0};
  const auto work = [](auto& worker, std::int64_t piece) { worker(piece); };
  const auto merge = [](auto& worker) { worker.merge(); };
  if (graph != nullptr)
    run_pieces(
        pieces.size(), threads, stretch,
        [&] {
          return PairsPath(rows, owners, question, bound, pieces, *graph,
                           collector);
        },
        work, merge);
  else
    run_pieces(
        pieces.size(), threads, stretch,
        [&] {
          return AllPath(rows, owners, question, bound, pieces, collector);
        },
        work, merge);
  TriplesFound found;
  found.triples = collector.finish();
  found.pairs = pairs_of_all(request, kernels, points, found.triples);
  found.checksum = collector.checksum();
  found.stats = collector.stats();
  found.stats.path = graph != nullptr ? TriplePath::pairs : TriplePath::all;
  found.stats.seconds = seconds_since(start);
  return found;
}

}  // namespace cpu
}  // namespace fsknn
