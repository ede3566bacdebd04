#include "core/search/permuted_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/pieces.hpp"

// The products are compiled for several instruction sets, of which the loader
// chooses one. This needs indirect functions of the GNU C library.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && \
    defined(__GNUC__) && !defined(__clang__)
#define FSKNN_CLONES \
  __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FSKNN_CLONES
#endif

namespace fsknn {
namespace {

// A tile has eight rows, which are lanes of vectors, and four outcomes.
constexpr std::int64_t kTileRows = 8;
constexpr std::int64_t kTileOutcomes = 4;
using TileRows = double __attribute__((vector_size(8 * kTileRows)));
using TileSums = std::array<double, kTileRows>;
using Sums = std::array<TileSums, kTileOutcomes>;

/// Sums values times factors over samples. values: [num_samples x kTileRows];
/// factors: [num_samples x kTileOutcomes].
FSKNN_CLONES void add_up(const double* values, const double* factors,
                         std::int64_t num_samples, double* out) {
  TileRows sums[kTileOutcomes] = {};
  for (std::int64_t f = 0; f < num_samples; ++f) {
    TileRows value;
    __builtin_memcpy(&value, values + f * kTileRows, sizeof value);
    // Without unrolling, the sums would be in memory.
#pragma GCC unroll 4
    for (std::int64_t one = 0; one < kTileOutcomes; ++one)
      sums[one] += value * factors[f * kTileOutcomes + one];
  }
  __builtin_memcpy(out, sums, sizeof sums);
}

// Two tiles of rows in single precision.
constexpr std::int64_t kRoughRows = 2 * kTileRows;
using RoughRows = float __attribute__((vector_size(4 * kRoughRows)));

/// Whether the square of any sum of values times factors is above its outcome's
/// limit, or not a number. values: [num_samples x kRoughRows]; factors:
/// [num_samples x kTileOutcomes]; limits: [kTileOutcomes].
FSKNN_CLONES bool any_above(const float* values, const float* factors,
                            std::int64_t num_samples, const float* limits) {
  RoughRows sums[kTileOutcomes] = {};
  for (std::int64_t f = 0; f < num_samples; ++f) {
    RoughRows value;
    __builtin_memcpy(&value, values + f * kRoughRows, sizeof value);
#pragma GCC unroll 4
    for (std::int64_t one = 0; one < kTileOutcomes; ++one)
      sums[one] += value * factors[f * kTileOutcomes + one];
  }
  auto above = ~(sums[0] * sums[0] <= limits[0]);
  for (std::int64_t one = 1; one < kTileOutcomes; ++one)
    above |= ~(sums[one] * sums[one] <= limits[one]);
  int any = 0;
  for (std::int64_t row = 0; row < kRoughRows; ++row) any |= above[row];
  return any != 0;
}

/// A bound on the error of a sum of products of single precision, of rows and
/// outcomes of length 1: a rounding for each sum, product and factor.
double rough_error(std::int64_t num_samples) {
  const double roundings = static_cast<double>(num_samples + 8) * 0x1p-24;
  return roundings < 0.5 ? 1.001 * roundings / (1.0 - roundings) : 2.0;
}

/// The values of a tile's rows, and which of them there are.
struct RowTile {
  std::array<std::int64_t, kTileRows> row{};
  std::size_t count = 0;
  const double* values = nullptr;   ///< [num_samples x kTileRows]
  const double* squares = nullptr;  ///< of the values
};

/// Rows that count, in tiles.
class RowTiles {
 public:
  RowTiles(const PointRows& rows, const int* place)
      : num_samples_(rows.num_samples) {
    for (std::int64_t row = 0; row < rows.num_rows; ++row)
      if (place[row] > -2) rows_.push_back(row);
    const std::int64_t tiles = size();
    values_.resize(
        static_cast<std::size_t>(2 * tiles * kTileRows * num_samples_));
    rough_.resize(
        static_cast<std::size_t>(num_pairs() * kRoughRows * num_samples_));
    is_kept_.resize(static_cast<std::size_t>(num_pairs()));
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      double* to = values_.data() + 2 * tile * kTileRows * num_samples_;
      float* rough = rough_.data() + tile / 2 * kRoughRows * num_samples_ +
                     tile % 2 * kTileRows;
      for (std::int64_t one = 0; one < kTileRows; ++one) {
        const std::int64_t row = row_at(tile, one);
        if (place[row] >= 0) is_kept_[static_cast<std::size_t>(tile / 2)] = 1;
        for (std::int64_t f = 0; f < num_samples_; ++f) {
          const double value = rows.values[f * rows.num_rows + row];
          to[f * kTileRows + one] = value;
          to[(num_samples_ + f) * kTileRows + one] = value * value;
          rough[f * kRoughRows + one] = static_cast<float>(value);
        }
      }
    }
  }
  std::int64_t size() const { return (count() + kTileRows - 1) / kTileRows; }
  RowTile operator()(std::int64_t tile) const {
    RowTile out;
    out.count = static_cast<std::size_t>(
        std::min(kTileRows, count() - tile * kTileRows));
    for (std::int64_t one = 0; one < kTileRows; ++one)
      out.row[static_cast<std::size_t>(one)] = row_at(tile, one);
    out.values = values_.data() + 2 * tile * kTileRows * num_samples_;
    out.squares = out.values + kTileRows * num_samples_;
    return out;
  }
  /// The rows of two tiles, [num_samples x kRoughRows], and 0 for a tile that
  /// does not exist.
  const float* rough(std::int64_t pair) const {
    return rough_.data() + pair * kRoughRows * num_samples_;
  }
  /// Are statistics of rows of two tiles kept?
  bool is_kept(std::int64_t pair) const {
    return is_kept_[static_cast<std::size_t>(pair)] != 0;
  }

 private:
  std::int64_t num_pairs() const { return (size() + 1) / 2; }
  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  // The last row fills the last tile.
  std::int64_t row_at(std::int64_t tile, std::int64_t one) const {
    return rows_[static_cast<std::size_t>(
        std::min(tile * kTileRows + one, count() - 1))];
  }

  std::int64_t num_samples_;
  std::vector<std::int64_t> rows_;
  std::vector<double> values_;
  std::vector<float> rough_;
  std::vector<char> is_kept_;
};

/// Takes the statistics, or the moments of variances, of tiles of four outcomes
/// from `first` on.
class Taker {
 public:
  Taker(const VarianceParts& parts, const LargestStatistics& out)
      : parts_(parts), out_(out) {}
  void begin(std::int64_t first) {
    first_ = first;
    for (std::size_t one = 0; one < kTileOutcomes; ++one)
      largest_[one] = out_.largest[outcome(one)];
  }
  /// The number of an outcome of a tile. The last one fills the last tile.
  std::int64_t outcome(std::size_t one) const {
    return std::min(first_ + static_cast<std::int64_t>(one),
                    out_.num_outcomes - 1);
  }
  bool has_moments() const { return out_.moments != nullptr; }

  void take(std::int64_t row, std::size_t one, double statistic) {
    const int place = out_.place[row];
    if (place < 0)
      largest_[one] = std::max(largest_[one], statistic);
    else if (is_there(one))
      out_.kept[outcome(one) * out_.num_kept + place] = statistic;
  }
  double largest(std::size_t one) const { return largest_[one]; }
  bool is_kept(std::int64_t row) const { return out_.place[row] >= 0; }
  /// `sums` are those of a part of a tile's first rows, and `all` those of all
  /// squares.
  void take_moments(std::size_t one, int part, std::size_t count,
                    const TileSums& sums, const TileSums& all) const {
    if (!is_there(one)) return;
    const std::int64_t at = outcome(one) * parts_.num_parts + part;
    double* to = out_.moments + 4 * at;
    for (std::size_t row = 0; row < count; ++row) {
      if (all[row] < kLeastVariance) continue;
      const double ratio = std::max(sums[row], 0.0) / all[row] *
                           parts_.freedom / parts_.expected[at];
      const double log = std::log(std::max(ratio, kLeastRatio));
      to[0] += 1.0;
      to[1] += ratio;
      to[2] += log;
      to[3] += log * log;
    }
  }
  void finish() const {
    for (std::size_t one = 0; one < kTileOutcomes; ++one)
      if (is_there(one))
        out_.largest[outcome(one)] =
            std::max(out_.largest[outcome(one)], largest_[one]);
  }

 private:
  bool is_there(std::size_t one) const {
    return first_ + static_cast<std::int64_t>(one) < out_.num_outcomes;
  }

  const VarianceParts& parts_;
  const LargestStatistics& out_;
  std::int64_t first_ = 0;
  std::array<double, kTileOutcomes> largest_{};
};

/// A moderated part of a variance, and its share of the inverse degrees of
/// freedom (Satterthwaite).
struct ModeratedPart {
  double variance, share;
};
ModeratedPart moderated(const VarianceParts& parts, std::int64_t at, double sum,
                        double all) {
  const double variance =
      parts.of_prior[at] * all + parts.of_sum[at] * std::max(sum, 0.0);
  return {variance, variance * variance / parts.of_freedom[at]};
}

class SlopeWorker {
 public:
  SlopeWorker(std::int64_t num_samples, const SlopeOutcomes& outcomes,
              const VarianceParts& parts, const LargestStatistics& out)
      : num_samples_(num_samples),
        outcomes_(outcomes),
        parts_(parts),
        out_(out),
        taker_(parts, out),
        rough_error_(rough_error(num_samples)),
        slope_(static_cast<std::size_t>(num_samples * kTileOutcomes)),
        weight_(slope_.size()),
        rough_(slope_.size()),
        weighted_(outcomes.weighted != nullptr ? slope_.size() : 0) {}

  void begin(std::int64_t first) {
    taker_.begin(first);
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      const std::int64_t at = taker_.outcome(one);
      last_[one] = outcomes_.last[at];
      for (std::int64_t f = 0; f < num_samples_; ++f) {
        const std::int64_t from = at * num_samples_ + f;
        const std::size_t to =
            static_cast<std::size_t>(f * kTileOutcomes) + one;
        slope_[to] = outcomes_.columns[from];
        rough_[to] = static_cast<float>(slope_[to]);
        weight_[to] = outcomes_.weight[from];
        if (!weighted_.empty()) weighted_[to] = outcomes_.weighted[from];
      }
      if (taker_.has_moments()) continue;
      least_[one] = 0.0;
      for (int part = 0; part < parts_.num_parts; ++part)
        least_[one] += parts_.of_prior[at * parts_.num_parts + part];
      set_limit(one);
    }
  }

  /// Compares tiles from an even number on.
  void compare(const RowTiles& tiles, std::int64_t from, std::int64_t to) {
    const bool is_rough =
        !taker_.has_moments() && out_.form == StatisticForm::score;
    for (std::int64_t tile = from; tile < to; ++tile) {
      // Single precision shows that most pairs of tiles count for nothing.
      if (is_rough && tile % 2 == 0 && !tiles.is_kept(tile / 2) &&
          !may_count(tiles.rough(tile / 2))) {
        ++tile;
        continue;
      }
      compare(tiles(tile));
    }
  }

  void finish() { taker_.finish(); }

 private:
  void compare(const RowTile& tile) {
    Sums slopes, weighted, squares;
    add_up(tile.values, slope_.data(), num_samples_, slopes[0].data());
    if (!taker_.has_moments() && !counts(tile, slopes)) return;
    add_up(tile.squares, weight_.data(), num_samples_, squares[0].data());
    if (!weighted_.empty())
      add_up(tile.values, weighted_.data(), num_samples_, weighted[0].data());
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      TileSums all, sums, others;
      for (std::size_t row = 0; row < kTileRows; ++row) {
        const double slope = slopes[one][row];
        const double product =
            weighted_.empty() ? slope * last_[one] : weighted[one][row];
        all[row] = 1.0 - slope * slope;
        // The sum of weighted squares of the residuals.
        sums[row] =
            squares[one][row] - slope * (2.0 * product - slope * last_[one]);
        others[row] = all[row] - sums[row];
      }
      if (taker_.has_moments()) {
        taker_.take_moments(one, 0, tile.count, sums, all);
        if (parts_.num_parts > 1)
          taker_.take_moments(one, 1, tile.count, others, all);
        continue;
      }
      for (std::size_t row = 0; row < tile.count; ++row)
        take(tile.row[row], one, slopes[one][row], sums[row]);
    }
  }

  void take(std::int64_t row, std::size_t one, double slope, double sum) {
    const double all = 1.0 - slope * slope;
    const double sums[2] = {sum, all - sum};
    ModeratedPart total = {0.0, 0.0};
    for (int part = 0; part < parts_.num_parts; ++part) {
      const ModeratedPart of =
          moderated(parts_, taker_.outcome(one) * parts_.num_parts + part,
                    sums[part], all);
      total.variance += of.variance;
      total.share += of.share;
    }
    const double squared_t =
        slope * slope / std::max(total.variance, kLeastVariance);
    const double freedom =
        std::min(parts_.freedom, total.variance * total.variance / total.share);
    if (out_.form == StatisticForm::freedom)
      return taker_.take(row, one, freedom);
    const double t = std::copysign(out_.form == StatisticForm::score
                                       ? normal_score(squared_t, freedom)
                                       : std::sqrt(squared_t),
                                   slope);
    switch (outcomes_.side) {
      case StatisticSide::signed_t: return taker_.take(row, one, t);
      case StatisticSide::absolute: return taker_.take(row, one, std::fabs(t));
      case StatisticSide::negative: return taker_.take(row, one, -t);
    }
  }

  // The variance is at least its parts of the prior, in units of 1 - slope^2.
  // If the prior is all of it, this is sharp. So no square of a slope up to the
  // limit has a larger score. A margin is left for rounding.
  void set_limit(std::size_t one) {
    const double f = parts_.freedom;
    const double least =
        std::max(taker_.largest(one), 0.0) * (8.0 * f + 3.0) / (8.0 * f + 1.0);
    const double squared_t = f * std::expm1(least * least / f);
    const double ratio = squared_t * least_[one];
    // Without a limit, a slope of 0 counts, too.
    limit_[one] =
        out_.form == StatisticForm::score && taker_.largest(one) >= 0.0
            ? (1.0 - 1e-6) / (1.0 + 1.0 / ratio)
            : -1.0;
    known_[one] = taker_.largest(one);
    const double rough = std::sqrt(limit_[one]) - rough_error_;
    rough_limit_[one] =
        rough > 0.0 ? static_cast<float>(rough * rough * (1.0 - 1e-6)) : -1.0F;
  }
  bool may_count(const float* rough) {
    for (std::size_t one = 0; one < kTileOutcomes; ++one)
      if (known_[one] != taker_.largest(one)) set_limit(one);
    return any_above(rough, rough_.data(), num_samples_, rough_limit_.data());
  }
  bool counts(const RowTile& tile, const Sums& slopes) {
    bool any = false;
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      if (known_[one] != taker_.largest(one)) set_limit(one);
      for (std::size_t row = 0; row < kTileRows; ++row)
        any |= !(slopes[one][row] * slopes[one][row] <= limit_[one]);
    }
    for (std::size_t row = 0; row < tile.count; ++row)
      any |= taker_.is_kept(tile.row[row]);
    return any;
  }

  const std::int64_t num_samples_;
  const SlopeOutcomes& outcomes_;
  const VarianceParts& parts_;
  const LargestStatistics& out_;
  Taker taker_;
  const double rough_error_;
  std::array<double, kTileOutcomes> last_{}, least_{}, limit_{}, known_{};
  std::array<float, kTileOutcomes> rough_limit_{};
  std::vector<double> slope_, weight_;
  std::vector<float> rough_;
  std::vector<double> weighted_;
};

class LevelWorker {
 public:
  LevelWorker(std::int64_t num_samples, const LevelOutcomes& outcomes,
              const VarianceParts& parts, const LargestStatistics& out)
      : num_samples_(num_samples),
        outcomes_(outcomes),
        parts_(parts),
        out_(out),
        taker_(parts, out),
        num_(static_cast<std::size_t>(parts.num_parts)),
        factors_(2 * num_ * level_size()),
        means_(num_),
        sums_(num_),
        counts_(num_),
        weights_(num_) {}

  void begin(std::int64_t first) {
    taker_.begin(first);
    std::fill(factors_.begin(), factors_.end(), 0.0);
    for (auto& counts : counts_) counts.fill(0.0);
    for (std::size_t one = 0; one < kTileOutcomes; ++one)
      for (std::int64_t f = 0; f < num_samples_; ++f) {
        const auto level = static_cast<std::size_t>(
            outcomes_.levels[taker_.outcome(one) * num_samples_ + f] - 1);
        double* to = factors_.data() + 2 * level * level_size() +
                     static_cast<std::size_t>(f * kTileOutcomes) + one;
        const double root = outcomes_.root[f];
        to[0] = root;
        to[level_size()] = 1.0;
        counts_[level][one] += root * root;
      }
  }

  void compare(const RowTiles& tiles, std::int64_t from, std::int64_t to) {
    for (std::int64_t tile = from; tile < to; ++tile) compare(tiles(tile));
  }

  void finish() { taker_.finish(); }

 private:
  void compare(const RowTile& tile) {
    for (std::size_t level = 0; level < num_; ++level) {
      const double* factors = factors_.data() + 2 * level * level_size();
      add_up(tile.values, factors, num_samples_, means_[level][0].data());
      add_up(tile.squares, factors + level_size(), num_samples_,
             sums_[level][0].data());
    }
    for (std::size_t one = 0; one < kTileOutcomes; ++one) {
      TileSums all = {};
      for (std::size_t level = 0; level < num_; ++level)
        for (std::size_t row = 0; row < kTileRows; ++row) {
          double& mean = means_[level][one][row];
          mean /= counts_[level][one];
          sums_[level][one][row] -= counts_[level][one] * mean * mean;
          all[row] += sums_[level][one][row];
        }
      if (taker_.has_moments())
        for (std::size_t level = 0; level < num_; ++level)
          taker_.take_moments(one, static_cast<int>(level), tile.count,
                              sums_[level][one], all);
      else
        for (std::size_t row = 0; row < tile.count; ++row)
          taker_.take(tile.row[row], one, statistic(row, one, all[row]));
    }
  }

  std::size_t level_size() const {
    return static_cast<std::size_t>(num_samples_ * kTileOutcomes);
  }

  // Welch (1951), with moderated variances.
  double statistic(std::size_t row, std::size_t one, double all) {
    const std::int64_t first = taker_.outcome(one) * parts_.num_parts;
    double weight = 0.0, mean = 0.0;
    for (std::size_t level = 0; level < num_; ++level) {
      const double variance =
          moderated(parts_, first + static_cast<std::int64_t>(level),
                    sums_[level][one][row], all)
              .variance;
      weights_[level] =
          counts_[level][one] / std::max(variance, kLeastVariance);
      weight += weights_[level];
      mean += weights_[level] * means_[level][one][row];
    }
    mean /= weight;
    double between = 0.0, excess = 0.0;
    for (std::size_t level = 0; level < num_; ++level) {
      const double gap = means_[level][one][row] - mean;
      const double rest = 1.0 - weights_[level] / weight;
      between += weights_[level] * gap * gap;
      excess += rest * rest /
                parts_.of_freedom[first + static_cast<std::int64_t>(level)];
    }
    const auto num = static_cast<double>(num_);
    const double f = between / (num - 1.0) /
                     (1.0 + 2.0 * (num - 2.0) / (num * num - 1.0) * excess);
    const double freedom =
        std::min(parts_.freedom, (num * num - 1.0) / (3.0 * excess));
    switch (out_.form) {
      case StatisticForm::plain: return f;
      case StatisticForm::freedom: return freedom;
      case StatisticForm::score: break;
    }
    return chi_squared_score(f, num - 1.0, freedom);
  }

  const std::int64_t num_samples_;
  const LevelOutcomes& outcomes_;
  const VarianceParts& parts_;
  const LargestStatistics& out_;
  Taker taker_;
  const std::size_t num_;
  std::vector<double> factors_;
  std::vector<Sums> means_, sums_;
  std::vector<std::array<double, kTileOutcomes>> counts_;
  std::vector<double> weights_;
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
               const Outcomes& outcomes, const VarianceParts& parts,
               const LargestStatistics& out)
      : tiles_(tiles),
        at_once_(2 * std::max<std::int64_t>(
                         1, kValuesAtOnce / (4 * num_samples * kTileRows))),
        num_outcomes_(out.num_outcomes) {
    for (std::int64_t at = 0; at < kTilesOfOutcomes; ++at)
      workers_.emplace_back(num_samples, outcomes, parts, out);
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
        worker(at).compare(tiles_, from, to);
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
                     const VarianceParts& parts, int num_threads,
                     Progress* progress, const LargestStatistics& out) {
  const RowTiles tiles(rows, out.place);
  if (tiles.size() == 0) return;
  constexpr std::int64_t of_piece = kTilesOfOutcomes * kTileOutcomes;
  const double operations = 3.0 * static_cast<double>(rows.num_rows) *
                            static_cast<double>(rows.num_samples) *
                            static_cast<double>(out.num_outcomes);
  run_pieces((out.num_outcomes + of_piece - 1) / of_piece,
             useful_threads(num_threads, operations), {progress, 0.0, 1.0},
             [&] {
               return OutcomePiece<Worker>(tiles, rows.num_samples, outcomes,
                                           parts, out);
             });
}

}  // namespace

double normal_score(double squared_t, double freedom) {
  return (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) *
         std::sqrt(freedom * std::log1p(squared_t / freedom));
}

double chi_squared_score(double f, double sides, double freedom) {
  return (freedom + sides / 2.0 - 1.0) * std::log1p(sides * f / freedom);
}

void permuted_statistics(const PointRows& rows, const SlopeOutcomes& outcomes,
                         const VarianceParts& parts, int num_threads,
                         Progress* progress, const LargestStatistics& out) {
  take_statistics<SlopeWorker>(rows, outcomes, parts, num_threads, progress,
                               out);
}

void permuted_statistics(const PointRows& rows, const LevelOutcomes& outcomes,
                         const VarianceParts& parts, int num_threads,
                         Progress* progress, const LargestStatistics& out) {
  take_statistics<LevelWorker>(rows, outcomes, parts, num_threads, progress,
                               out);
}

}  // namespace fsknn
