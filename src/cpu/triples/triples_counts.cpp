// Counts triples by their similarity.
#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "cpu/triples/triples.hpp"
#include "cpu/triples/triples_apex.hpp"

namespace fsknn {
namespace cpu {
namespace {

class CountWorker {
 public:
  CountWorker(const TripleRows& rows, const TripleShare& share,
              const ApexPieces& pieces, const std::vector<double>& breaks)
      : rows_(rows),
        share_(share),
        pieces_(pieces),
        breaks_(breaks),
        // Floats are smaller than the numbers by at most 2^-23 of these, and
        // sums of floats have that error for each rounding. off_exact_ is the
        // exact step's error.
        off_((rows.roundings() + 8.0) * 0x1p-22),
        off_exact_(16.0 * rounding_of_sums(rows.points().padded) + 0x1p-40),
        small_(rows.points().wide
                   ? HUGE_VAL
                   : std::max(0x1p-60, rows.scaled(TripleRows::kCoarse))),
        pass_(rows),
        sum_(static_cast<std::size_t>(rows.size())),
        counts_(breaks.size() + 1, 0) {
    for (std::int64_t p = 0; p < rows.size(); ++p)
      sum_[static_cast<std::size_t>(p)] = rows.scaled_sum(p);
  }

  void operator()(std::int64_t piece) {
    const std::int64_t apex = pieces_.apex(piece);
    pass_.enter(apex, share_.owners());
    pass_.choose(share_.owners(), nullptr);
    pass_.tiles(
        pieces_.part(piece), pieces_.parts,
        [&](std::int64_t j) { return share_.has(apex, j); },
        [&](const ApexPass::Tile& tile) { take(apex, tile); });
  }

  void merge(std::vector<std::int64_t>& counts, TripleStats& stats) {
    for (std::size_t b = 0; b < counts.size(); ++b) {
      counts[b] += counts_[b];
      stats_.triples += static_cast<double>(counts_[b]);
    }
    stats_.candidates = stats_.reranked;
    stats_.comparisons = pass_.comparisons();
    stats.add(stats_);
  }

 private:
  void take(std::int64_t apex, const ApexPass::Tile& tile) {
    for (int r = 0; r < TripleTile::rows; ++r) {
      const std::int64_t j = tile.rows[r];
      if (j < 0) continue;
      const double both = sum_[static_cast<std::size_t>(apex)] +
                          sum_[static_cast<std::size_t>(j)];
      for (int c = 0; c < TripleTile::panel; ++c) {
        const std::int64_t k = tile.columns[c];
        if (k <= j) continue;
        const double total = both + sum_[static_cast<std::size_t>(k)];
        ++counts_[bin_of_sum(
            apex, j, k,
            static_cast<double>(tile.sums[r * TripleTile::panel + c]), total)];
      }
      poll_after(100.0);
    }
  }

  std::size_t bin_of_sum(std::int64_t apex, std::int64_t j, std::int64_t k,
                         double sum, double total) {
    // Smaller sums may lose much to underflow.
    if (total >= small_) {
      const double share = sum / total;
      const double about = 1.5 - 1.5 * share;
      const double off = 1.5 * share * off_ + off_exact_;
      const double low = std::max(0.0, about - off);
      const double high = std::min(1.0, std::max(0.0, about + off));
      const std::size_t bin = bin_of(breaks_, std::min(low, 1.0));
      // This tests the bin's upper end: smaller values are in the bin.
      if (high < (bin < breaks_.size() ? breaks_[bin] : 2.0)) return bin;
      if (bin_of(breaks_, high) == bin) return bin;
    }
    stats_.reranked += 1;
    poll_after(static_cast<double>(rows_.steps()));
    return bin_of(breaks_, rows_.similarity(apex, j, k));
  }

  const TripleRows& rows_;
  const TripleShare& share_;
  const ApexPieces& pieces_;
  const std::vector<double>& breaks_;
  const double off_, off_exact_, small_;
  ApexPass pass_;
  std::vector<double> sum_;
  std::vector<std::int64_t> counts_;
  TripleStats stats_;
};

}  // namespace

TripleCounts count_triples(const Request& request,
                           const std::vector<double>& breaks,
                           const TripleQuestion& question, double part,
                           double parts, const RowSource& source,
                           Progress* progress,
                           const MakeTripleScanner& given_scanner) {
  const Clock::time_point start = Clock::now();
  const MakeTripleScanner make_scanner = scanner_for(request, given_scanner);
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const PreparedPoints points = prepare_triples(
      request, source, kernels.prepare_row, request.num_threads, progress);
  const TripleOwners owners(points, {});
  const TripleShare share(owners, question, points.size(), part, parts);
  std::vector<std::int64_t> counts(breaks.size() + 1, 0);
  TripleCounts found;
  if (make_scanner && !points.wide) {
    TripleScanner::Task task;
    task.apexes = share.parts(points.size(), 0.0);
    task.by_pairs = false;
    make_scanner(request, points)
        ->count(task, breaks, counts, found.stats, progress);
    for (const std::int64_t count : counts)
      found.stats.triples += static_cast<double>(count);
  } else {
    const TripleRows rows(points, triple_kernels(kernels), request.num_threads,
                          progress);
    const int threads = triple_threads(request, points);
    const ApexPieces pieces(share.apexes(), threads);
    run_pieces(
        pieces.size(), threads, {progress, 0.0, 1.0},
        [&] { return CountWorker(rows, share, pieces, breaks); },
        [](CountWorker& worker, std::int64_t piece) { worker(piece); },
        [&](CountWorker& worker) { worker.merge(counts, found.stats); });
  }
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const double count = static_cast<double>(counts[b]);
    found.checksum += checksum_of(static_cast<std::int64_t>(b), count);
    if (b == 0)
      found.below = count;
    else if (b + 1 == counts.size())
      found.above = count;
    else
      found.counts.push_back(count);
  }
  found.stats.seconds = seconds_since(start);
  return found;
}

}  // namespace cpu
}  // namespace fsknn
