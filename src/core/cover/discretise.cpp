#include "core/cover/discretise.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "core/base/sorting.hpp"

namespace fsknn {
namespace {

/// Entropies as sums of n log2(n) over counts, from a table. For N samples N
/// Ent = N log2(N) - sum over classes of n log2(n).
class Logs {
 public:
  explicit Logs(std::size_t most) : of_(most + 1, 0.0) {
    for (std::size_t n = 2; n <= most; ++n)
      of_[n] = static_cast<double>(n) * std::log2(static_cast<double>(n));
  }
  double operator()(int count) const {
    return of_[static_cast<std::size_t>(count)];
  }

 private:
  std::vector<double> of_;
};

struct Sample {
  double value;
  int klass;
};

/// A run of samples of one class, or of equal values. No best cut is within it
/// (Fayyad and Irani's theorem).
struct Block {
  int first, last;  ///< samples first .. last - 1
};

/// The midpoint, but always at least the lower and below the upper value.
double midpoint(double lower, double upper) {
  const double sum = lower + upper;
  const double cut = std::isfinite(sum) ? sum / 2 : lower / 2 + upper / 2;
  return cut >= lower && cut < upper ? cut : lower;
}

/// Cuts rows one after another; each thread has its own.
class Cutter {
 public:
  Cutter(const std::vector<int>& classes, int num_classes, const Logs& logs)
      : classes_(classes),
        num_classes_(static_cast<std::size_t>(num_classes)),
        logs_(logs),
        samples_(classes.size()),
        all_(num_classes_),
        left_(num_classes_),
        right_(num_classes_) {}

  RowCuts cut(const double* row) {
    for (std::size_t f = 0; f < samples_.size(); ++f)
      samples_[f] = {row[f], classes_[f]};
    // Equal values go into one block, so their order does not matter.
    sort_in_runs(samples_, spare_, [](const Sample& a, const Sample& b) {
      return a.value < b.value;
    });
    find_blocks();
    RowCuts found;
    within_ = 0.0;
    split(0, blocks_.size(), found.cuts);
    const int count = static_cast<int>(samples_.size());
    count_blocks(0, blocks_.size(), all_);
    if (!found.cuts.empty())
      found.gain = std::max(0.0, (bits_of(all_, count) - within_) / count);
    return found;
  }

 private:
  /// Cut points are between blocks. Adjacent values are separated unless both
  /// have samples of the same single class.
  void find_blocks() {
    blocks_.clear();
    constexpr int kMixed = -1;
    int previous = kMixed;
    const int count = static_cast<int>(samples_.size());
    for (int first = 0; first < count;) {
      const Sample& head = samples_[static_cast<std::size_t>(first)];
      int klass = head.klass, last = first + 1;
      for (; last < count; ++last) {
        const Sample& next = samples_[static_cast<std::size_t>(last)];
        if (next.value != head.value) break;
        if (next.klass != klass) klass = kMixed;
      }
      if (!blocks_.empty() && klass != kMixed && klass == previous)
        blocks_.back().last = last;
      else
        blocks_.push_back({first, last});
      previous = klass;
      first = last;
    }
  }

  void count_block(const Block& block, std::vector<int>& counts) const {
    for (int s = block.first; s < block.last; ++s)
      ++counts[static_cast<std::size_t>(
          samples_[static_cast<std::size_t>(s)].klass)];
  }

  void count_blocks(std::size_t from, std::size_t to,
                    std::vector<int>& counts) const {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t b = from; b < to; ++b) count_block(blocks_[b], counts);
  }

  /// count * Ent of samples with these class counts.
  double bits_of(const std::vector<int>& counts, int count) const {
    double ordered = 0.0;
    for (const int n : counts) ordered += logs_(n);
    return logs_(count) - ordered;
  }

  static int num_present(const std::vector<int>& counts) {
    const auto present = [](int n) { return n > 0; };
    return static_cast<int>(
        std::count_if(counts.begin(), counts.end(), present));
  }

  /// Treats the blocks from .. to - 1 as one interval, or cuts them into
  /// several.
  void split(std::size_t from, std::size_t to, std::vector<double>& cuts) {
    count_blocks(from, to, all_);
    const int first = blocks_[from].first, last = blocks_[to - 1].last;
    const int count = last - first;
    const double bits = bits_of(all_, count);
    poll_after(20.0 * count);
    if (to - from < 2) {
      within_ += bits;
      return;
    }
    const std::size_t at = best_boundary(from, to, count, bits);
    if (at == from) {
      within_ += bits;
      return;
    }
    split(from, at, cuts);
    const std::size_t boundary = static_cast<std::size_t>(blocks_[at].first);
    cuts.push_back(
        midpoint(samples_[boundary - 1].value, samples_[boundary].value));
    split(at, to, cuts);
  }

  /// The first block of the upper part for the best cut, or `from` if the
  /// criterion rejects it. all_ has the counts of from .. to - 1.
  std::size_t best_boundary(std::size_t from, std::size_t to, int count,
                            double bits) {
    std::fill(left_.begin(), left_.end(), 0);
    scores_.resize(to - from);
    double least = bits;
    for (std::size_t b = from; b + 1 < to; ++b) {
      count_block(blocks_[b], left_);
      const int lower = blocks_[b].last - blocks_[from].first;
      double ordered = 0.0;
      for (std::size_t c = 0; c < num_classes_; ++c)
        ordered += logs_(left_[c]) + logs_(all_[c] - left_[c]);
      const double score = logs_(lower) + logs_(count - lower) - ordered;
      scores_[b - from] = score;
      least = std::min(least, score);
    }
    // Takes the lowest of cuts that are equally good except for rounding.
    const double near = least + 1e-9 * count;
    std::size_t best = from;
    while (best + 1 < to && !(scores_[best - from] <= near)) ++best;
    if (best + 1 >= to) return from;
    return accepted(from, best + 1, count, bits, scores_[best - from])
               ? best + 1
               : from;
  }

  /// Fayyad and Irani (1993), the criterion of section 3:
  /// Gain > log2(N - 1) / N + Delta / N,
  /// Delta = log2(3^k - 2) - (k Ent(S) - k1 Ent(S1) - k2 Ent(S2)).
  bool accepted(std::size_t from, std::size_t at, int count, double bits,
                double score) {
    count_blocks(from, at, left_);
    for (std::size_t c = 0; c < num_classes_; ++c)
      right_[c] = all_[c] - left_[c];
    const int lower = blocks_[at].first - blocks_[from].first;
    const int upper = count - lower;
    const int k = num_present(all_);
    // This form of log2(3^k - 2) does not overflow for large k.
    const double choices =
        k * std::log2(3.0) + std::log2(1.0 - 2.0 * std::pow(3.0, -k));
    const double delta =
        choices -
        (k * bits / count - num_present(left_) * bits_of(left_, lower) / lower -
         num_present(right_) * bits_of(right_, upper) / upper);
    return bits - score > std::log2(count - 1.0) + delta;
  }

  const std::vector<int>& classes_;
  std::size_t num_classes_;
  const Logs& logs_;
  std::vector<Sample> samples_, spare_;
  std::vector<Block> blocks_;
  std::vector<int> all_, left_, right_;
  std::vector<double> scores_;
  double within_ = 0.0;  ///< sum over the final intervals of count * Ent
};

}  // namespace

std::vector<RowCuts> discretise(const RowSource& source,
                                const std::vector<int>& classes,
                                int num_classes, int num_threads,
                                Progress* progress) {
  const std::int64_t n = source.num_points(), d = source.num_features();
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  const Logs logs(static_cast<std::size_t>(d));
  std::vector<RowCuts> found(static_cast<std::size_t>(n));
  const double operations =
      32.0 * static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_blocks, useful_threads(num_threads, operations),
             {progress, 0.0, 1.0}, [&] {
               return [&, cutter = Cutter(classes, num_classes, logs),
                       rows = std::vector<double>(static_cast<std::size_t>(
                           block_rows * d))](std::int64_t b) mutable {
                 const std::int64_t first = b * block_rows;
                 const std::int64_t count = std::min(block_rows, n - first);
                 source.read(first, count, rows.data(), d);
                 for (std::int64_t r = 0; r < count; ++r)
                   found[static_cast<std::size_t>(first + r)] =
                       cutter.cut(rows.data() + r * d);
               };
             });
  return found;
}

void assign_levels(const RowSource& source,
                   const std::vector<std::int64_t>& rows,
                   const std::vector<std::vector<double>>& cuts,
                   int num_threads, int missing, int* levels,
                   Progress* progress) {
  const std::int64_t m = static_cast<std::int64_t>(rows.size());
  const std::int64_t d = source.num_features();
  const double operations =
      8.0 * static_cast<double>(m) * static_cast<double>(d);
  run_pieces(
      m, useful_threads(num_threads, operations), {progress, 0.0, 0.0}, [&] {
        return [&, row = std::vector<double>(static_cast<std::size_t>(d))](
                   std::int64_t r) mutable {
          const std::size_t at = static_cast<std::size_t>(r);
          source.read(rows[at], 1, row.data(), d);
          const std::vector<double>& c = cuts[at];
          for (std::int64_t f = 0; f < d; ++f) {
            const double x = row[static_cast<std::size_t>(f)];
            levels[f * m + r] =
                std::isnan(x)
                    ? missing
                    : 1 + static_cast<int>(
                              std::lower_bound(c.begin(), c.end(), x) -
                              c.begin());
          }
        };
      });
}

}  // namespace fsknn
