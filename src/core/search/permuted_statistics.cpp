#include "core/search/permuted_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// A tile has four rows and four outcomes. One sum of each, or two sums of two
// rows, stay in 16 registers of two doubles, which each processor has.
constexpr std::int64_t kTileRows = 4;
constexpr std::int64_t kTileOutcomes = 4;
using Two = double __attribute__((vector_size(16)));
using Four = std::array<Two, 2>;
static_assert(kTileOutcomes == 4, "Four holds one number of each outcome");

/// The values of a tile's rows, and which of them there are.
struct RowTile {
  std::array<std::int64_t, kTileRows> row{};
  int count = 0;
  const double* values = nullptr;  ///< [num_samples x kTileRows]
};

/// Rows that count, in tiles.
class RowTiles {
 public:
  RowTiles(const PointRows& rows, const int* place)
      : num_samples_(rows.num_samples) {
    for (std::int64_t row = 0; row < rows.num_rows; ++row)
      if (place[row] > -2) rows_.push_back(row);
    const std::int64_t tiles = size();
    values_.resize(static_cast<std::size_t>(tiles * kTileRows * num_samples_));
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      double* to = values_.data() + tile * kTileRows * num_samples_;
      for (std::int64_t one = 0; one < kTileRows; ++one) {
        const std::int64_t row = row_at(tile, one);
        for (std::int64_t f = 0; f < num_samples_; ++f)
          to[f * kTileRows + one] = rows.values[f * rows.num_rows + row];
      }
    }
  }
  std::int64_t size() const { return (count() + kTileRows - 1) / kTileRows; }
  RowTile operator()(std::int64_t tile) const {
    RowTile out;
    out.count =
        static_cast<int>(std::min(kTileRows, count() - tile * kTileRows));
    for (std::int64_t one = 0; one < kTileRows; ++one)
      out.row[static_cast<std::size_t>(one)] = row_at(tile, one);
    out.values = values_.data() + tile * kTileRows * num_samples_;
    return out;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  // The last row fills the last tile.
  std::int64_t row_at(std::int64_t tile, std::int64_t one) const {
    return rows_[static_cast<std::size_t>(
        std::min(tile * kTileRows + one, count() - 1))];
  }

  std::int64_t num_samples_;
  std::vector<std::int64_t> rows_;
  std::vector<double> values_;
};

/// Sums over samples of a tile: of values, and of squares, each with other
/// factors of the outcomes.
template <int kSums>
struct Sums {
  std::array<std::array<std::array<double, kTileOutcomes>, kSums>, kTileRows>
      of;
};

/// factors: [num_samples x kSums x kTileOutcomes]. Writes rows from `start` on.
template <int kSums, int kRows>
void add_up_rows(std::size_t start, const double* values, const double* factors,
                 std::int64_t num_samples, Sums<kSums>& out) {
  std::array<std::array<Four, kSums>, kRows> sums{};
  for (std::int64_t f = 0; f < num_samples; ++f) {
    const double* value = values + f * kTileRows + start;
    const double* factor = factors + f * kSums * kTileOutcomes;
    // Without unrolling, the sums would be in memory.
#pragma GCC unroll 4
    for (std::size_t row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (std::size_t sum = 0; sum < kSums; ++sum) {
        const double x = sum == 1 ? value[row] * value[row] : value[row];
        const Two both = {x, x};
#pragma GCC unroll 4
        for (std::size_t half = 0; half < 2; ++half) {
          const double* at = factor + sum * kTileOutcomes + 2 * half;
          sums[row][sum][half] += both * Two{at[0], at[1]};
        }
      }
    }
  }
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t sum = 0; sum < kSums; ++sum)
      for (std::size_t one = 0; one < kTileOutcomes; ++one)
        out.of[start + row][sum][one] = sums[row][sum][one / 2][one % 2];
}

void add_up(const double* values, const double* factors,
            std::int64_t num_samples, Sums<1>& out) {
  add_up_rows<1, 4>(0, values, factors, num_samples, out);
}

void add_up(const double* values, const double* factors,
            std::int64_t num_samples, Sums<2>& out) {
  add_up_rows<2, 2>(0, values, factors, num_samples, out);
  add_up_rows<2, 2>(2, values, factors, num_samples, out);
}

/// The number of an outcome of a tile. The last one fills the last tile.
std::int64_t outcome_at(std::int64_t first, std::size_t one,
                        const LargestStatistics& out) {
  return std::min(first + static_cast<std::int64_t>(one), out.num_outcomes - 1);
}

/// Takes the statistics of tiles of four outcomes from `first` on.
class Taker {
 public:
  explicit Taker(const LargestStatistics& out) : out_(out) {}
  void begin(std::int64_t first) {
    first_ = first;
    for (std::size_t one = 0; one < kTileOutcomes; ++one)
      largest_[one] = out_.largest[outcome_at(first, one, out_)];
  }
  void take(std::int64_t row, std::size_t one, double statistic) {
    const int place = out_.place[row];
    if (place < 0) {
      largest_[one] = std::max(largest_[one], statistic);
    } else if (first_ + static_cast<std::int64_t>(one) < out_.num_outcomes) {
      out_.kept[(first_ + static_cast<std::int64_t>(one)) * out_.num_kept +
                place] = statistic;
    }
  }
  /// Does the pair count, whose statistic is at most this in magnitude?
  bool counts(std::int64_t row, std::size_t one, double most) const {
    return out_.place[row] >= 0 || !(most <= largest_[one]);
  }
  void finish() {
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      const std::int64_t at = first_ + static_cast<std::int64_t>(one);
      if (at < out_.num_outcomes)
        out_.largest[at] = std::max(out_.largest[at], largest_[one]);
    }
  }

 private:
  const LargestStatistics& out_;
  std::int64_t first_ = 0;
  std::array<double, kTileOutcomes> largest_{};
};

class RobustWorker {
 public:
  RobustWorker(std::int64_t num_samples, const RobustOutcomes& outcomes,
               const LargestStatistics& out)
      : num_samples_(num_samples),
        outcomes_(outcomes),
        out_(out),
        taker_(out),
        slope_(static_cast<std::size_t>(num_samples * kTileOutcomes)),
        factors_(2 * slope_.size()) {}

  void begin(std::int64_t first) {
    read(first);
    taker_.begin(first);
  }

  void compare(const RowTile& tile) {
    Sums<1> slopes;
    add_up(tile.values, slope_.data(), num_samples_, slopes);
    if (!counts(tile, slopes)) return;
    Sums<2> sums;
    add_up(tile.values, factors_.data(), num_samples_, sums);
    for (std::size_t row = 0; row < static_cast<std::size_t>(tile.count);
         ++row) {
      const auto& of = sums.of[row];
      for (std::size_t one = 0; one < kTileOutcomes; ++one)
        taker_.take(
            tile.row[row], one,
            statistic(one, slopes.of[row][0][one], of[0][one], of[1][one]));
    }
  }

  void finish() { taker_.finish(); }

 private:
  void read(std::int64_t first) {
    least_.fill(HUGE_VAL);
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      const std::int64_t at = outcome_at(first, one, out_);
      last_[one] = outcomes_.last[at];
      if (is_grouped()) num_inside_[one] = outcomes_.num_inside[at];
      for (std::int64_t f = 0; f < num_samples_; ++f) {
        const std::int64_t from = at * num_samples_ + f;
        slope_[static_cast<std::size_t>(f * kTileOutcomes) + one] =
            outcomes_.columns[from];
        double* to = factors_.data() + f * 2 * kTileOutcomes + one;
        to[0] = outcomes_.weighted[from];
        to[kTileOutcomes] =
            is_grouped() ? outcomes_.inside[from] : outcomes_.weight[from];
        least_[one] = std::min(least_[one], outcomes_.weight[from]);
      }
    }
  }

  // The squares of the residuals have the sum 1 - slope^2, so the variance is
  // at least the smallest weight times that. This is sharp for two groups of
  // equal size. A margin is left for rounding.
  bool counts(const RowTile& tile, const Sums<1>& slopes) const {
    for (std::size_t row = 0; row < static_cast<std::size_t>(tile.count); ++row)
      for (std::size_t one = 0; one < kTileOutcomes; ++one) {
        const double slope = slopes.of[row][0][one], square = slope * slope;
        const double least = least_[one] * (1.0 - square) * (1.0 - 1e-6);
        const double most = square / std::max(least, kLeastVariance);
        if (taker_.counts(tile.row[row], one,
                          is_grouped() ? most_score(most) : most))
          return true;
      }
    return false;
  }

  bool is_grouped() const { return outcomes_.inside != nullptr; }

  // Welch's degrees of freedom are at most those of Student's t.
  double most_score(double squared_t) const {
    return normal_score(squared_t, static_cast<double>(num_samples_ - 2)) *
           (1.0 + 1e-9);
  }

  double statistic(std::size_t one, double slope, double weighted,
                   double squares) const {
    const double t = is_grouped()
                         ? score_of_groups(slope, squares, num_inside_[one])
                         : robust(slope, weighted, squares, last_[one]);
    switch (outcomes_.side) {
      case StatisticSide::signed_t: return t;
      case StatisticSide::absolute: return std::fabs(t);
      case StatisticSide::negative: return -t;
    }
    return t;
  }

  // The sum of weighted squares of the residuals is the variance.
  static double robust(double slope, double weighted, double squares,
                       double last) {
    const double variance = squares - slope * (2.0 * weighted - slope * last);
    return slope * std::fabs(slope) / std::max(variance, kLeastVariance);
  }

  // inside: the sum of squares of the second group. All squares have the sum 1,
  // and the means of the groups explain the square of the slope. Each group's
  // part of the variance has the weight of its samples.
  double score_of_groups(double slope, double inside, double n_2) const {
    const double n = static_cast<double>(num_samples_);
    const double n_1 = n - n_2;
    const double square = slope * slope;
    const double part_2 =
        std::max(inside - square * n_1 / n, 0.0) * n_1 / (n * (n_2 - 1.0));
    const double part_1 = std::max(1.0 - inside - square * n_2 / n, 0.0) * n_2 /
                          (n * (n_1 - 1.0));
    const double variance = std::max(part_1 + part_2, kLeastVariance);
    const double freedom =
        variance * variance /
        std::max(part_1 * part_1 / (n_1 - 1.0) + part_2 * part_2 / (n_2 - 1.0),
                 variance * variance / (n - 2.0));
    return std::copysign(normal_score(square / variance, freedom), slope);
  }

  const std::int64_t num_samples_;
  const RobustOutcomes& outcomes_;
  const LargestStatistics& out_;
  Taker taker_;
  std::array<double, kTileOutcomes> last_{}, least_{}, num_inside_{};
  std::vector<double> slope_, factors_;
};

class LevelWorker {
 public:
  LevelWorker(std::int64_t num_samples, const LevelOutcomes& outcomes,
              const LargestStatistics& out)
      : num_samples_(num_samples), outcomes_(outcomes), out_(out), taker_(out) {
    for (std::int64_t f = 0; f < num_samples; ++f) {
      const auto level = static_cast<std::size_t>(outcomes.levels[f]);
      if (counts_.size() < level) counts_.resize(level);
      counts_[level - 1] += 1.0;
    }
    factors_.resize(counts_.size() * level_size());
    sums_.resize(counts_.size());
  }

  void begin(std::int64_t first) {
    std::fill(factors_.begin(), factors_.end(), 0.0);
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      const int* levels =
          outcomes_.levels + outcome_at(first, one, out_) * num_samples_;
      for (std::int64_t f = 0; f < num_samples_; ++f) {
        double* to = factors_.data() +
                     static_cast<std::size_t>(levels[f] - 1) * level_size() +
                     static_cast<std::size_t>(f * 2 * kTileOutcomes) + one;
        to[0] = 1.0;
        to[kTileOutcomes] = 1.0;
      }
    }
    taker_.begin(first);
  }

  void compare(const RowTile& tile) {
    for (std::size_t level = 0; level < counts_.size(); ++level)
      add_up(tile.values, factors_.data() + level * level_size(), num_samples_,
             sums_[level]);
    for (std::size_t row = 0; row < static_cast<std::size_t>(tile.count); ++row)
      for (std::size_t one = 0; one < kTileOutcomes; ++one)
        taker_.take(tile.row[row], one, statistic(row, one));
  }

  void finish() { taker_.finish(); }

 private:
  std::size_t level_size() const {
    return static_cast<std::size_t>(num_samples_ * 2 * kTileOutcomes);
  }

  // Welch (1951).
  double statistic(std::size_t row, std::size_t one) const {
    double all = 0.0, mean = 0.0;
    for (std::size_t level = 0; level < counts_.size(); ++level) {
      const double weight = weight_of(level, row, one);
      all += weight;
      mean += weight * mean_of(level, row, one);
    }
    mean /= all;
    double between = 0.0, apart = 0.0;
    for (std::size_t level = 0; level < counts_.size(); ++level) {
      const double weight = weight_of(level, row, one);
      const double gap = mean_of(level, row, one) - mean;
      const double rest = 1.0 - weight / all;
      between += weight * gap * gap;
      apart += rest * rest / (counts_[level] - 1.0);
    }
    const auto num = static_cast<double>(counts_.size());
    return between / (num - 1.0) /
           (1.0 + 2.0 * (num - 2.0) / (num * num - 1.0) * apart);
  }
  double mean_of(std::size_t level, std::size_t row, std::size_t one) const {
    return sums_[level].of[row][0][one] / counts_[level];
  }
  double weight_of(std::size_t level, std::size_t row, std::size_t one) const {
    const double count = counts_[level], mean = mean_of(level, row, one);
    const double variance =
        (sums_[level].of[row][1][one] - count * mean * mean) / (count - 1.0);
    return count / std::max(variance, kLeastVariance);
  }

  const std::int64_t num_samples_;
  const LevelOutcomes& outcomes_;
  const LargestStatistics& out_;
  Taker taker_;
  std::vector<double> counts_, factors_;
  std::vector<Sums<2>> sums_;
};

// Tiles of rows that stay in a cache while they are compared with the outcomes
// of a piece.
constexpr std::int64_t kValuesAtOnce = 1 << 15;
constexpr std::int64_t kTilesOfOutcomes = 16;

/// Compares all rows with the outcomes of a piece.
template <class Worker>
class OutcomePiece {
 public:
  template <class Outcomes>
  OutcomePiece(const RowTiles& tiles, std::int64_t num_samples,
               const Outcomes& outcomes, const LargestStatistics& out)
      : tiles_(tiles),
        at_once_(std::max<std::int64_t>(
            1, kValuesAtOnce / (num_samples * kTileRows))),
        num_outcomes_(out.num_outcomes) {
    for (std::int64_t at = 0; at < kTilesOfOutcomes; ++at)
      workers_.emplace_back(num_samples, outcomes, out);
  }

  void operator()(std::int64_t piece) {
    const std::int64_t first = piece * kTilesOfOutcomes * kTileOutcomes;
    const std::int64_t used =
        std::min(kTilesOfOutcomes,
                 (num_outcomes_ - first + kTileOutcomes - 1) / kTileOutcomes);
    for (std::int64_t at = 0; at < used; ++at)
      worker(at).begin(first + at * kTileOutcomes);
    for (std::int64_t from = 0; from < tiles_.size(); from += at_once_) {
      const std::int64_t to = std::min(from + at_once_, tiles_.size());
      for (std::int64_t at = 0; at < used; ++at)
        for (std::int64_t tile = from; tile < to; ++tile)
          worker(at).compare(tiles_(tile));
      poll();
    }
    for (std::int64_t at = 0; at < used; ++at) worker(at).finish();
  }

 private:
  Worker& worker(std::int64_t at) {
    return workers_[static_cast<std::size_t>(at)];
  }

  const RowTiles& tiles_;
  const std::int64_t at_once_, num_outcomes_;
  std::vector<Worker> workers_;
};

template <class Worker, class Outcomes>
void take_statistics(const PointRows& rows, const Outcomes& outcomes,
                     int num_threads, Progress* progress,
                     const LargestStatistics& out) {
  const RowTiles tiles(rows, out.place);
  if (tiles.size() == 0) return;
  constexpr std::int64_t of_piece = kTilesOfOutcomes * kTileOutcomes;
  const double operations = 3.0 * static_cast<double>(rows.num_rows) *
                            static_cast<double>(rows.num_samples) *
                            static_cast<double>(out.num_outcomes);
  run_pieces(
      (out.num_outcomes + of_piece - 1) / of_piece,
      useful_threads(num_threads, operations), {progress, 0.0, 1.0}, [&] {
        return OutcomePiece<Worker>(tiles, rows.num_samples, outcomes, out);
      });
}

}  // namespace

double normal_score(double squared_t, double freedom) {
  return (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) *
         std::sqrt(freedom * std::log1p(squared_t / freedom));
}

void permuted_statistics(const PointRows& rows, const RobustOutcomes& outcomes,
                         int num_threads, Progress* progress,
                         const LargestStatistics& out) {
  take_statistics<RobustWorker>(rows, outcomes, num_threads, progress, out);
}

void permuted_statistics(const PointRows& rows, const LevelOutcomes& outcomes,
                         int num_threads, Progress* progress,
                         const LargestStatistics& out) {
  take_statistics<LevelWorker>(rows, outcomes, num_threads, progress, out);
}

}  // namespace fsknn
