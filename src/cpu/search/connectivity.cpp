#include "cpu/search/engine.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Each pair of blocks of points is one piece of work with its own sums. They
// are added in the order of the blocks at the end, so that the result does not
// depend on the threads.
constexpr std::int64_t kMostBlocks = 16;
constexpr std::int64_t kLeastBlock = 64;
// The rows of this many columns stay in a cache while the rows of a block are
// compared with them.
constexpr std::int64_t kColumns = 64;
// Whole powers up to this one are computed by multiplication, the others by
// std::pow().
constexpr double kMostProducts = 64.0;

/// Prepared rows by place, with or without missing values.
struct Rows {
  std::int64_t size = 0, padded = 0;
  const double* first = nullptr;
  const double* sums = nullptr;  ///< null if values are missing
  const double* row(std::int64_t place) const { return first + place * padded; }
};

/// [powers x points] of one block's columns or rows.
using Sums = Buffer<double>;

class Powers {
 public:
  explicit Powers(const std::vector<double>& powers) : powers_(powers) {
    for (std::size_t p = 0; p < powers.size(); ++p) {
      const double power = powers[p];
      if (power == std::floor(power) && power <= kMostProducts)
        most_ = std::max(most_, static_cast<int>(power));
    }
  }

  /// Calls visit(p, values) for each power, by its number, with that power of
  /// `count` similarities.
  template <class Visit>
  void each(const double* similarity, std::int64_t count, double* scratch,
            Visit visit) const {
    std::fill_n(scratch, count, 1.0);
    for (int whole = 1; whole <= most_; ++whole) {
      for (std::int64_t j = 0; j < count; ++j) scratch[j] *= similarity[j];
      for (std::size_t p = 0; p < powers_.size(); ++p)
        if (powers_[p] == whole) visit(p, scratch);
    }
    for (std::size_t p = 0; p < powers_.size(); ++p) {
      if (powers_[p] == std::floor(powers_[p]) && powers_[p] <= kMostProducts)
        continue;
      for (std::int64_t j = 0; j < count; ++j)
        scratch[j] = std::pow(similarity[j], powers_[p]);
      visit(p, scratch);
    }
  }

 private:
  const std::vector<double>& powers_;
  int most_ = 0;
};

double similarity_of(NetworkType type, double r) {
  if (!(r == r)) return 0.0;  // the pair has no value
  r = clamp_to_one(r);
  switch (type) {
    case NetworkType::magnitude: return std::fabs(r);
    case NetworkType::both_signs: return (1.0 + r) / 2.0;
    case NetworkType::positive: return std::max(r, 0.0);
  }
  throw_unknown("network type", static_cast<int>(type));
}

/// Computes the correlations of a row with a range of consecutive rows.
class Correlations {
 public:
  Correlations(const Kernels& kernels, const MetricEntry& metric,
               const MaskedTerms* masked, const Rows& rows)
      : kernels_(kernels), metric_(metric), masked_(masked), rows_(rows) {
    for (std::int32_t c = 0; c < kColumns; ++c) pairs_[c] = {0, c};
  }
  void of(std::int64_t row, std::int64_t first, std::int64_t count,
          double* r) const {
    const double* const a = rows_.row(row);
    const double* const b = rows_.row(first);
    if (masked_ != nullptr) {
      kernels_.masked(*masked_, a, b, rows_.padded, pairs_, count, r);
    } else {
      exact_in_turns(kernels_, Accumulation::dot, a, b, rows_.padded, pairs_,
                     count, r);
      // Rows of length 1 have sums of 0 here: their products are r.
      for (std::int64_t c = 0; rows_.sums[row] > 0.0 && c < count; ++c)
        r[c] = metric_.similarity(r[c], rows_.sums[row], rows_.sums[first + c]);
    }
    poll_after(static_cast<double>(count) * static_cast<double>(rows_.padded));
  }

 private:
  const Kernels& kernels_;
  const MetricEntry& metric_;
  const MaskedTerms* const masked_;
  const Rows& rows_;
  Pair pairs_[kColumns];
};

class Network {
 public:
  Network(const Rows& rows, const Correlations& correlations, NetworkType type,
          const std::vector<double>& powers)
      : rows_(rows),
        correlations_(correlations),
        type_(type),
        powers_(powers),
        num_powers_(static_cast<std::int64_t>(powers.size())),
        block_(
            std::max(kLeastBlock, (rows.size + kMostBlocks - 1) / kMostBlocks)),
        num_blocks_((rows.size + block_ - 1) / block_),
        sums_(static_cast<std::size_t>(num_blocks_ * num_blocks_)) {
    // of(i, j) has the sums of block i's points over block j.
    for (std::int64_t i = 0; i < num_blocks_; ++i)
      for (std::int64_t j = 0; j < num_blocks_; ++j) {
        Sums& sums = of(i, j);
        sums = Sums(size(i) * num_powers_);
        std::fill_n(sums.data(), size(i) * num_powers_, 0.0);
      }
  }

  void run(int num_threads, Progress* progress) {
    run_pieces(num_blocks_ * (num_blocks_ + 1) / 2, num_threads,
               {progress, 0.0, 1.0}, [&] {
                 return [&](std::int64_t piece) {
                   std::int64_t i = 0;
                   while (piece >= num_blocks_ - i) piece -= num_blocks_ - i++;
                   meet(i, i + piece);
                 };
               });
  }

  /// The sum of the point at a place over all blocks, for power p.
  double total(std::int64_t place, std::int64_t p) const {
    const std::int64_t i = place / block_;
    double sum = 0.0;
    for (std::int64_t j = 0; j < num_blocks_; ++j)
      sum += sums_[static_cast<std::size_t>(i * num_blocks_ + j)]
                  [p * size(i) + place % block_];
    return sum;
  }

 private:
  std::int64_t size(std::int64_t i) const {
    return std::min(block_, rows_.size - i * block_);
  }
  Sums& of(std::int64_t i, std::int64_t j) {
    return sums_[static_cast<std::size_t>(i * num_blocks_ + j)];
  }

  /// Compares each pair of two blocks, or of one block with itself, once.
  void meet(std::int64_t i, std::int64_t j) {
    double* const rows = of(i, j).data();
    double* const columns = of(j, i).data();
    double similarity[kColumns], power[kColumns];
    for (std::int64_t c = 0; c < size(j); c += kColumns) {
      const std::int64_t end = std::min(size(j), c + kColumns);
      for (std::int64_t r = 0; r < size(i); ++r) {
        const std::int64_t first = i == j ? std::max(c, r + 1) : c;
        if (first >= end) break;
        const std::int64_t count = end - first;
        correlations_.of(i * block_ + r, j * block_ + first, count, similarity);
        for (std::int64_t k = 0; k < count; ++k)
          similarity[k] = similarity_of(type_, similarity[k]);
        powers_.each(similarity, count, power,
                     [&](std::size_t at, const double* values) {
                       const std::int64_t p = static_cast<std::int64_t>(at);
                       double sum = 0.0;
                       for (std::int64_t k = 0; k < count; ++k)
                         sum += values[k];
                       rows[p * size(i) + r] += sum;
                       double* const to = columns + p * size(j) + first;
                       for (std::int64_t k = 0; k < count; ++k)
                         to[k] += values[k];
                     });
      }
    }
  }

  const Rows& rows_;
  const Correlations& correlations_;
  const NetworkType type_;
  const Powers powers_;
  const std::int64_t num_powers_, block_, num_blocks_;
  std::vector<Sums> sums_;
};

}  // namespace

void connectivities(const Request& asked, NetworkType type,
                    const std::vector<double>& powers, const RowSource& source,
                    double missing, double* out, Progress* progress) {
  if (!asked.metric->is_unit_dot())
    throw std::invalid_argument("connectivities are of correlations");
  const std::int64_t n = source.num_points();
  const int threads = useful_threads(
      asked.num_threads, static_cast<double>(n) * static_cast<double>(n) *
                             static_cast<double>(source.num_features()) / 4);
  const Kernels& kernels = choose_kernels(asked.instruction_set);
  PreparedPoints points;
  MaskedPoints masked;
  std::unique_ptr<const MaskedRule> rule;
  Rows rows;
  if (asked.na_pairwise) {
    rule = std::make_unique<MaskedRule>(asked, source, nullptr, progress);
    masked =
        prepare_masked(source, *rule, asked.skip, false, threads, progress);
    rows = {masked.size(), masked.padded, masked.rows.data(), nullptr};
  } else {
    points = prepare_points(source, recipe_of(asked, 0), asked.skip, false,
                            kernels.prepare_row, threads, progress);
    rows = {points.size(), points.padded, points.rows.data(),
            points.sums.data()};
  }
  const PointOrder& order = asked.na_pairwise ? masked.order : points.order;
  std::fill_n(out, n * static_cast<std::int64_t>(powers.size()), missing);
  if (rows.size == 0) return;
  const Correlations correlations(
      kernels, *asked.metric, rule != nullptr ? &rule->terms() : nullptr, rows);
  Network network(rows, correlations, type, powers);
  network.run(threads, progress);
  for (std::int64_t place = 0; place < rows.size; ++place)
    for (std::size_t p = 0; p < powers.size(); ++p)
      out[static_cast<std::int64_t>(p) * n + order.id_at(Place{place}).value] =
          network.total(place, static_cast<std::int64_t>(p));
}

}  // namespace cpu
}  // namespace fsknn
