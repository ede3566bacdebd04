#include "cpu/triples/triples.hpp"

#include <algorithm>
#include <memory>

#include "core/base/pieces.hpp"
#include "core/rows/split_mix.hpp"
#include "cpu/search/prepared_pairs.hpp"
#include "cpu/triples/triples_apex.hpp"
#include "cpu/triples/triples_collect.hpp"
#include "cpu/triples/triples_pairs.hpp"

namespace fsknn {
namespace cpu {

/// Estimates for all points from a sample of them.
struct TripleSample {
  double points = 0;  ///< 0: too few points to sample
  /// Upper bounds on shares: of pairs, of two pairs at one point, and of all
  /// three pairs, that a triple can have. `reranked` is the share of triples
  /// whose largest values may fit.
  double pairs = 1.0, forks = 1.0, triangles = 1.0, reranked = 1.0;
  double passing = 0.0;  ///< share of triples that reach the similarity
  double found = 0;      ///< number in the sample, if all triples are asked for
  double triples = -1;   ///< estimated number; -1: too few to estimate
  double share = 0;      ///< as passing, if triples is known; else 0
  double all = 0;        ///< number of triples in question
  DistanceTally tally;   ///< of those found in the sample

  /// The triples of one point depend on each other, so that the estimate is
  /// rough. The threshold allows a factor of four. It is infinite if triples of
  /// similarity 1 are already too many.
  double fits(double most) const {
    const double of_sample = most / all * (tally.total() / share);
    return threshold_that_fits(tally, std::max(1.0, of_sample / 4.0));
  }
};

namespace {

// The number of sampled points, for the share of pairs and the number of
// triples.
constexpr std::int64_t kSample = 96;

// The bytes that the pairs' graph may take by default.
constexpr double kGraphMemory = 4e9;

/// The number of triples in the question's part, of all points.
double num_triples(const TripleOwners& owners, const TripleQuestion& q,
                   std::int64_t n) {
  double triples = 0;
  std::int64_t before = 0;
  for (const std::int64_t i : owners.apexes()) {
    const double others = static_cast<double>(n - 1 - before++);
    if (!owners.all() || is_in_stage(owners, q, i, 0))
      triples += others * (others - 1) / 2;
  }
  // With `contains` the stages share each apex.
  return owners.all() ? triples : triples / static_cast<double>(q.stages);
}

/// Chooses random points; the same for each number of points.
std::vector<std::int64_t> choose_sample(std::int64_t n) {
  SplitMix random(2018);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(n));
  for (std::int64_t p = 0; p < n; ++p) chosen[static_cast<std::size_t>(p)] = p;
  for (std::int64_t s = 0; s < kSample; ++s)
    std::swap(chosen[static_cast<std::size_t>(s)],
              chosen[static_cast<std::size_t>(
                  s + random.below(static_cast<std::uint32_t>(n - s)))]);
  chosen.resize(kSample);
  return chosen;
}

/// Completes a sample of kSample points.
void complete(TripleSample& sample) {
  constexpr double kTriples = kSample * (kSample - 1.0) * (kSample - 2.0) / 6.0;
  sample.points = kSample;
  sample.passing = sample.found / kTriples;
  if (sample.found < 1000) return;
  sample.share = sample.passing;
  sample.triples = sample.share * sample.all;
}

/// A sample for tables of alleles.
TripleSample look_at_tables(const Request& request,
                            const PreparedPoints& points,
                            const TripleOwners& owners,
                            const TripleQuestion& q) {
  TripleSample sample;
  const std::int64_t n = points.size();
  sample.all = num_triples(owners, q, n);
  if (n <= 2 * kSample) return sample;
  PreparedPoints some;
  some.num_features = points.num_features;
  some.padded = points.padded;
  some.order = order_points(kSample, {}, false);
  some.rows = Buffer<double>(kSample * points.padded);
  some.sums = Buffer<double>(kSample);
  TripleScanner::Task task;
  for (const std::int64_t place : choose_sample(n)) {
    const std::int64_t s = static_cast<std::int64_t>(task.apexes.size());
    std::copy_n(points.row(Place{place}), points.padded,
                some.rows.data() + s * points.padded);
    some.sums[s] = points.sums[place];
    task.apexes.push_back({s, 0, kSample, q.least});
  }
  TripleStats unused;
  if (owners.all())
    scanner_for(request, {})(request, some)
        ->find(
            task,
            [&](const std::vector<TripleHit>& hits) {
              for (const TripleHit& hit : hits)
                sample.tally.add(1.0 - hit.similarity);
              sample.found += static_cast<double>(hits.size());
            },
            unused, nullptr);
  complete(sample);
  return sample;
}

TripleSample look_at_sample(const PreparedPoints& points,
                            const TripleKernels& kernels,
                            const TripleOwners& owners, const TripleQuestion& q,
                            const TripleBound& bound) {
  TripleSample sample;
  const std::int64_t n = points.size();
  sample.all = num_triples(owners, q, n);
  if (n <= 2 * kSample || points.wide) return sample;
  const std::vector<std::int64_t> chosen = choose_sample(n);
  const auto sum = [&](std::int64_t s) {
    return points.sums[chosen[static_cast<std::size_t>(s)]];
  };
  const auto row = [&](std::int64_t s) {
    return points.row(Place{chosen[static_cast<std::size_t>(s)]});
  };
  std::vector<char> is_edge(kSample * kSample, 0);
  std::vector<double> sums(is_edge.size(), 0.0);
  const auto edge = [&](std::int64_t a, std::int64_t b) -> char& {
    return is_edge[static_cast<std::size_t>(a * kSample + b)];
  };
  const auto pair_sum = [&](std::int64_t a, std::int64_t b) -> double& {
    return sums[static_cast<std::size_t>(a * kSample + b)];
  };
  double edges = 0, forks = 0, triangles = 0, reranked = 0;
  for (std::int64_t a = 0; a < kSample; ++a) {
    for (std::int64_t b = a + 1; b < kSample; ++b) {
      const double largest =
          kernels.exact(row(a), row(b), row(b), points.padded);
      const double least = largest / (sum(a) + sum(b));
      pair_sum(a, b) = largest;
      edge(a, b) = edge(b, a) =
          least <= 0.5 * (1.0 + bound.pair_distance) ? 1 : 0;
      poll_after(static_cast<double>(points.padded));
    }
    double of_point = 0;
    for (std::int64_t b = 0; b < kSample; ++b) of_point += edge(a, b);
    edges += of_point / 2;
    forks += of_point * (of_point - 1) / 2;
  }
  for (std::int64_t a = 0; a < kSample; ++a)
    for (std::int64_t b = a + 1; b < kSample; ++b) {
      if (edge(a, b) == 0) continue;
      for (std::int64_t c = b + 1; c < kSample; ++c) {
        if (edge(a, c) == 0 || edge(b, c) == 0) continue;
        triangles += 1;
        const double total = total_of_three(sum(a), sum(b), sum(c));
        const double most = bound.share * (1.0 + 0x1p-40) * total;
        if (pair_sum(a, b) > most || pair_sum(a, c) > most ||
            pair_sum(b, c) > most)
          continue;
        reranked += 1;
        if (!owners.all()) continue;
        const double similarity = similarity_of_three(
            kernels.exact(row(a), row(b), row(c), points.padded), total);
        poll_after(static_cast<double>(points.padded));
        if (!(similarity >= q.least)) continue;
        sample.found += 1;
        sample.tally.add(1.0 - similarity);
      }
    }
  constexpr double kPairs = kSample * (kSample - 1.0) / 2.0;
  constexpr double kTriples = kPairs * (kSample - 2.0) / 3.0;
  sample.pairs = edges / kPairs;
  sample.forks = forks / (3.0 * kTriples);
  sample.triangles = triangles / kTriples;
  sample.reranked = reranked / kTriples;
  complete(sample);
  return sample;
}

/// Whether to search for triangles. Costs are in features of one triple, of
/// which a tile processes 16 at a time.
bool takes_pairs(const TripleQuestion& q, const TripleSample& sample,
                 const PreparedPoints& points, std::size_t num_nearly_empty) {
  // No pair excludes a triple then.
  if (points.wide) return false;
  // Their triples are processed one by one, which costs more than tiles.
  if (static_cast<std::int64_t>(num_nearly_empty) > points.size() / 8)
    return false;
  if (q.path != TriplePath::automatic) return q.path == TriplePath::pairs;
  if (!(q.least > 0.75) || !q.contains.empty()) return false;
  const double d = static_cast<double>(points.num_features) / 16;
  // Triples that are found are computed exactly on either path.
  const double reranked = sample.reranked - sample.passing;
  return 2.0 * sample.forks + 4.0 * sample.triangles + 4.0 * reranked * d <
         0.8 * sample.forks * d + 0.05;
}

/// All triples of the apexes in `owners`. These are the apexes of the share, or
/// other points: then a triple must also have an apex of the share.
class AllPath {
 public:
  AllPath(const TripleRows& rows, const TripleOwners& owners,
          const TripleShare& share, const TripleBound& bound,
          const ApexPieces& pieces, TripleCollector& collector)
      : rows_(rows),
        owners_(owners),
        share_(share),
        bound_(bound),
        pieces_(pieces),
        most_share_(float_above(bound.share)),
        pass_(rows),
        taker_(collector) {}
  void operator()(std::int64_t piece) {
    const std::int64_t apex = pieces_.apex(piece);
    pass_.enter(apex, owners_);
    pass_.choose(owners_, &bound_);
    pass_.tiles(
        pieces_.part(piece), pieces_.parts,
        [&](std::int64_t j) { return may_have(apex, j); },
        [&](const ApexPass::Tile& tile) {
          std::uint32_t keep[TripleTile::rows];
          rows_.kernels().test(tile.sums, tile.most_of_rows,
                               tile.most_of_columns, most_share_, keep);
          for_kept(tile, keep, [&](std::int64_t j, std::int64_t k, int, int) {
            if (!are_own() && !has(apex, j, k)) return;
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
  bool are_own() const { return &owners_ == &share_.owners(); }
  /// Whether row j may have triples with some k > j.
  bool may_have(std::int64_t apex, std::int64_t j) const {
    if (are_own() || (share_.owners().all() && apex < j))
      return share_.has(apex, j);
    return !share_.owners().all() || share_.has_apex(j);
  }
  bool has(std::int64_t apex, std::int64_t j, std::int64_t k) const {
    std::int64_t at[] = {apex, j, k};
    std::sort(at, at + 3);
    return share_.has(at[0], at[1], at[2]);
  }
  const TripleRows& rows_;
  const TripleOwners& owners_;
  const TripleShare& share_;
  const TripleBound& bound_;
  const ApexPieces& pieces_;
  const float most_share_;
  ApexPass pass_;
  TripleCollector::Taker taker_;
};

class PairsPath {
 public:
  PairsPath(const TripleRows& rows, const TripleShare& share,
            const TripleBound& bound, const ApexPieces& pieces,
            const PairGraph& graph, TripleCollector& collector)
      : rows_(rows),
        share_(share),
        pieces_(pieces),
        triangles_(graph, rows.points(), share.owners(), bound),
        taker_(collector) {}
  void operator()(std::int64_t piece) {
    const std::int64_t apex = pieces_.apex(piece), part = pieces_.part(piece);
    triangles_.of(
        apex,
        [&](std::int64_t j) {
          return j % pieces_.parts == part && share_.has(apex, j);
        },
        [&](std::int64_t j, std::int64_t k) {
          taker_.take(apex, j, k, rows_.similarity(apex, j, k));
          poll_after(static_cast<double>(rows_.steps()));
        });
  }
  void merge() {
    taker_.stats.comparisons = taker_.stats.reranked *
                               static_cast<double>(rows_.points().num_features);
    taker_.stats.candidates = triangles_.looked_at();
    taker_.merge();
  }

 private:
  const TripleRows& rows_;
  const TripleShare& share_;
  const ApexPieces& pieces_;
  Triangles triangles_;
  TripleCollector::Taker taker_;
};

/// Whether a scanner omits triples that a pair with the apex excludes. It costs
/// almost nothing, so it is used wherever it may help.
bool prunes(const TripleQuestion& q) {
  return q.path == TriplePath::pairs ||
         (q.path == TriplePath::automatic && q.least > 0.75);
}

void scan(TripleScanner& scanner, const TripleQuestion& q,
          const TripleShare& share, std::int64_t num_points,
          TripleCollector& collector, Progress* progress) {
  TripleScanner::Task task;
  task.contained = share.owners().contained();
  task.stage = q.stage;
  task.stages = q.stages;
  task.apexes = share.parts(num_points, q.least);
  task.by_pairs = prunes(q);
  TripleCollector::Taker taker(collector);
  TripleStats looked_at;
  scanner.find(
      task,
      [&](const std::vector<TripleHit>& hits) {
        for (const TripleHit& hit : hits)
          taker.take(hit.apex, hit.lower, hit.higher, hit.similarity);
      },
      looked_at, progress);
  taker.stats.candidates = looked_at.candidates;
  taker.stats.reranked = looked_at.reranked;
  taker.stats.comparisons = looked_at.comparisons;
  taker.merge();
}

/// Computes the pairs' values for each triple.
std::vector<TriplePairs> pairs_of_all(const MetricEntry& metric,
                                      const Kernels& kernels,
                                      const PreparedPoints& points,
                                      const std::vector<Triple>& triples,
                                      int num_threads, Progress* progress) {
  constexpr std::int64_t kAtOnce = 1024;
  const std::int64_t count = static_cast<std::int64_t>(triples.size());
  std::vector<TriplePairs> found(triples.size());
  const auto place = [&](std::int32_t id) {
    return static_cast<std::int32_t>(points.order.place_of(PointId{id}).value);
  };
  const double operations =
      3.0 * static_cast<double>(count) * static_cast<double>(points.padded);
  run_pieces(
      (count + kAtOnce - 1) / kAtOnce, useful_threads(num_threads, operations),
      {progress, 1.0, 1.0}, [&] {
        return [&](std::int64_t piece) {
          const std::int64_t end = std::min(count, (piece + 1) * kAtOnce);
          for (std::int64_t i = piece * kAtOnce; i < end; ++i) {
            const Triple& t = triples[static_cast<std::size_t>(i)];
            const std::int32_t a = place(t.from), b = place(t.to);
            const std::int32_t c = place(t.third);
            const Pair pairs[] = {{a, b}, {a, c}, {b, c}};
            double sums[3];
            kernels.exact(metric.accumulation, points.rows.data(),
                          points.rows.data(), points.padded, pairs, 3, sums);
            found[static_cast<std::size_t>(i)] =
                pairs_of(metric, points, t, sums);
            poll_after(3.0 * static_cast<double>(points.padded));
          }
        };
      });
  return found;
}

/// Sorts into the order of the answer; by_owner: by owner first.
void put_in_order(std::vector<Triple>& triples, const PreparedPoints& points,
                  const TripleOwners& owners, bool by_owner) {
  std::sort(triples.begin(), triples.end());
  if (!by_owner || owners.all()) return;
  const auto place = [&](std::int32_t id) {
    return points.order.place_of(PointId{id}).value;
  };
  const auto owner = [&](const Triple& t) {
    return owners.owner_of(place(t.from), place(t.to), place(t.third));
  };
  std::stable_sort(
      triples.begin(), triples.end(),
      [&](const Triple& a, const Triple& b) { return owner(a) < owner(b); });
}

std::vector<std::int32_t> ids_of(const PreparedPoints& points,
                                 const std::vector<std::int64_t>& places) {
  std::vector<std::int32_t> ids;
  for (const std::int64_t p : places)
    ids.push_back(points.order.id_at(Place{p}).value);
  return ids;
}

}  // namespace

struct TripleSearch::Prepared {
  Prepared(const Request& asked, const TripleQuestion& q,
           const RowSource& source, Progress* progress,
           const MakeTripleScanner& given_scanner)
      : request(asked),
        question(q),
        kernels(choose_kernels(asked.instruction_set)),
        points(prepare_triples(asked, source, kernels.prepare_row,
                               asked.num_threads, progress)),
        bound(q.least, points.padded),
        owners(points, q.contains),
        sample(asked.metric->is_table()
                   ? look_at_tables(request, points, owners, question)
                   : look_at_sample(points, triple_kernels(kernels), owners,
                                    question, bound)),
        nearly_empty(nearly_empty_rows(points)) {
    const MakeTripleScanner make_scanner = scanner_for(request, given_scanner);
    if (make_scanner && !points.wide) {
      scanner = make_scanner(request, points);
      return;
    }
    rows.reset(new TripleRows(points, triple_kernels(kernels),
                              asked.num_threads, progress));
    if (!takes_pairs(question, sample, points, nearly_empty.size())) return;
    try {
      graph.reset(new PairGraph(
          request, source, points, bound,
          request.max_memory > 0 ? request.max_memory : kGraphMemory, nullptr));
    } catch (const MemoryFailure&) {
      if (question.path == TriplePath::pairs) throw;
    }
  }
  bool is_by_pairs() const {
    return graph != nullptr || (scanner != nullptr && prunes(question));
  }
  const Request request;
  const TripleQuestion question;
  const Kernels& kernels;
  const PreparedPoints points;
  const TripleBound bound;
  const TripleOwners owners;
  const TripleSample sample;
  const std::vector<std::int64_t> nearly_empty;
  std::unique_ptr<TripleScanner> scanner;  ///< null: use the CPU
  std::unique_ptr<TripleRows> rows;        ///< for the CPU
  std::unique_ptr<PairGraph> graph;        ///< null: test each triple by itself
};

TripleSearch::TripleSearch(const Request& request,
                           const TripleQuestion& question,
                           const RowSource& source, Progress* progress,
                           const MakeTripleScanner& scanner)
    : prepared_(new Prepared(request, question, source, progress, scanner)) {}

TripleSearch::~TripleSearch() = default;

TriplesFound TripleSearch::find(const Part& part, Progress* progress) const {
  const Clock::time_point start = Clock::now();
  const Prepared& p = *prepared_;
  const TripleShare share(p.owners, p.question, p.points.size(), part.part,
                          part.parts);
  const int threads = triple_threads(p.request, p.points);
  // If the sample predicts far too many triples, their number is not worth a
  // search. But a failure is never decided by the sample alone: more than
  // `most` must be found.
  const bool estimates = p.sample.triples > 10.0 * part.most;
  const TooManyTriples enough(
      estimates ? p.sample.triples : std::numeric_limits<double>::quiet_NaN(),
      true, part.most,
      estimates ? p.sample.fits(part.most)
                : std::numeric_limits<double>::quiet_NaN());
  TripleCollector collector(p.points, p.question.least, part.most,
                            part.stops || estimates ? &enough : nullptr);
  const auto run = [&](const ApexPieces& pieces, double from, double to,
                       const auto& make_worker) {
    run_pieces(
        pieces.size(), threads, {progress, from, to}, make_worker,
        [](auto& worker, std::int64_t piece) { worker(piece); },
        [](auto& worker) { worker.merge(); });
  };
  const ApexPieces pieces(share.apexes(), threads);
  if (p.scanner != nullptr) {
    scan(*p.scanner, p.question, share, p.points.size(), collector, progress);
  } else if (p.graph == nullptr) {
    run(pieces, 0.0, 1.0, [&] {
      return AllPath(*p.rows, p.owners, share, p.bound, pieces, collector);
    });
  } else {
    const double rest = p.nearly_empty.empty() ? 1.0 : 0.5;
    run(pieces, 0.0, rest, [&] {
      return PairsPath(*p.rows, share, p.bound, pieces, *p.graph, collector);
    });
    // Bounds from pairs hold only for triples without a nearly empty row.
    if (!p.nearly_empty.empty()) {
      const TripleOwners others(p.points, ids_of(p.points, p.nearly_empty));
      const ApexPieces of_others(others.apexes(), threads);
      run(of_others, rest, 1.0, [&] {
        return AllPath(*p.rows, others, share, p.bound, of_others, collector);
      });
    }
  }
  TriplesFound found;
  found.triples = collector.finish();
  put_in_order(found.triples, p.points, p.owners, part.by_owner);
  if (part.with_pairs)
    found.pairs =
        pairs_of_all(metric_of(p.request, p.points), p.kernels, p.points,
                     found.triples, p.request.num_threads, progress);
  found.checksum = collector.checksum();
  found.stats = collector.stats();
  const bool by_pairs = p.is_by_pairs();
  found.stats.path = by_pairs ? TriplePath::pairs : TriplePath::all;
  found.stats.sampled = p.sample.points;
  found.stats.sample_pairs = p.sample.pairs;
  found.stats.seconds = seconds_since(start);
  return found;
}

bool TripleSearch::is_table() const {
  return prepared_->request.metric->is_table();
}

TripleForecast TripleSearch::forecast() const {
  const Prepared& p = *prepared_;
  TripleForecast found;
  found.path = p.is_by_pairs() ? TriplePath::pairs : TriplePath::all;
  found.sampled = p.sample.points;
  found.pairs = p.sample.pairs;
  found.all = p.sample.all;
  found.triples = p.sample.triples;
  found.sample_found = p.sample.found;
  // On either path points are omitted whose pair with the apex leaves no room
  // for a triple. A GPU omits them only if it searches by pairs.
  double share = p.sample.forks;
  if (p.graph != nullptr) share = p.sample.reranked;
  if (p.scanner != nullptr && !p.is_by_pairs()) share = 1.0;
  found.comparisons =
      p.sample.all * share * static_cast<double>(p.points.num_features);
  return found;
}

TriplesFound find_triples(const Request& request,
                          const TripleQuestion& question,
                          const RowSource& source, Progress* progress) {
  TripleSearch::Part whole;
  whole.most = question.most;
  return TripleSearch(request, question, source, progress)
      .find(whole, progress);
}

}  // namespace cpu
}  // namespace fsknn
