#include "core/cover/cover_bound.hpp"

#include <algorithm>
#include <cmath>

namespace fsknn {
namespace {

/// Sums are added piece by piece in this order, for any number of threads.
constexpr int kPieces = 16;

/// The bits of each byte as eight counters of one byte each.
struct Spread {
  Spread() {
    for (int byte = 0; byte < 256; ++byte) {
      of[byte] = 0;
      for (int bit = 0; bit < 8; ++bit)
        of[byte] |= static_cast<std::uint64_t>(byte >> bit & 1) << (8 * bit);
    }
  }
  std::uint64_t of[256];
};

}  // namespace

CoverBound::CoverBound(const CoverProblem& problem, int num_threads)
    : problem_(problem), num_threads_(num_threads) {
  const std::size_t m = static_cast<std::size_t>(problem.num_pairs());
  const std::size_t n = static_cast<std::size_t>(problem.num_features());
  costs_.assign(n, 1.0);
  covers_.assign(m + 8, 0);
  direction_.assign(m, 0.0);
  lacks_.assign(m, 0.0);
  partial_.resize(n * kPieces);
  // These are the multipliers of a plain greedy cover: no cost is negative yet.
  u_.assign(m, 1.0);
  find_costs();
  double most = 1.0;
  for (const double c : costs_) most = std::max(most, 1.0 - c);
  u_.assign(m, 1.0 / most);
  best_u_ = u_;
  best_costs_.assign(n, 1.0);
  finished_ = m == 0;
}

int CoverBound::ceiling() const {
  return std::max(0, static_cast<int>(std::ceil(value())));
}

/// Processes eight pairs at a time: the sums of all 256 subsets of eight
/// multipliers, then one table look-up per feature.
void CoverBound::find_costs() {
  const int num_blocks = problem_.num_blocks();
  const int num_pairs = problem_.num_pairs();
  const std::size_t n = costs_.size();
  const double operations =
      2.0 * static_cast<double>(n) * static_cast<double>(num_blocks);
  run_pieces(kPieces, useful_threads(num_threads_, operations), {}, [&] {
    return [&, table = std::vector<double>(256)](std::int64_t piece) mutable {
      double* sums = partial_.data() + static_cast<std::size_t>(piece) * n;
      std::fill_n(sums, n, 0.0);
      const int first = static_cast<int>(num_blocks * piece / kPieces);
      const int last = static_cast<int>(num_blocks * (piece + 1) / kPieces);
      for (int b = first; b < last; ++b) {
        table[0] = 0.0;
        double largest = 0.0;
        for (std::size_t bit = 0; bit < 8; ++bit) {
          const int p = 8 * b + static_cast<int>(bit);
          const double u =
              p < num_pairs ? u_[static_cast<std::size_t>(p)] : 0.0;
          largest = std::max(largest, u);
          const std::size_t half = std::size_t{1} << bit;
          for (std::size_t s = 0; s < half; ++s) table[half + s] = table[s] + u;
        }
        if (largest == 0.0) continue;
        const std::uint8_t* bytes = problem_.block(b);
        for (std::size_t f = 0; f < n; ++f) sums[f] += table[bytes[f]];
      }
    };
  });
  std::fill(costs_.begin(), costs_.end(), 1.0);
  for (std::size_t piece = 0; piece < kPieces; ++piece)
    for (std::size_t f = 0; f < n; ++f) costs_[f] -= partial_[piece * n + f];
}

/// covers_: the number of features with a negative cost that count for each
/// pair.
void CoverBound::count_covers() {
  static const Spread spread;
  picked_.clear();
  for (std::size_t f = 0; f < costs_.size(); ++f)
    if (costs_[f] < 0.0) picked_.push_back(static_cast<int>(f));
  const int num_blocks = problem_.num_blocks();
  const double operations =
      2.0 * static_cast<double>(picked_.size()) * num_blocks;
  run_pieces(kPieces, useful_threads(num_threads_, operations), {}, [&] {
    return [&](std::int64_t piece) {
      const int first = static_cast<int>(num_blocks * piece / kPieces);
      const int last = static_cast<int>(num_blocks * (piece + 1) / kPieces);
      for (int b = first; b < last; ++b) {
        const std::uint8_t* bytes = problem_.block(b);
        int* counts = covers_.data() + 8 * static_cast<std::size_t>(b);
        std::fill_n(counts, 8, 0);
        for (std::size_t at = 0; at < picked_.size();) {
          // A counter of one byte is full after 255 additions.
          const std::size_t end = std::min(picked_.size(), at + 255);
          std::uint64_t sum = 0;
          for (; at < end; ++at) sum += spread.of[bytes[picked_[at]]];
          for (int bit = 0; bit < 8; ++bit)
            counts[bit] += static_cast<int>(sum >> (8 * bit) & 255);
        }
      }
    };
  });
}

void CoverBound::climb(int upper, int most_steps, Watch& watch) {
  // The bound reaches 22.372 of GLPK's relaxed optimum of 22.383 (425 rows, 78
  // samples, alpha 10), and 41.26 of 41.47 (600 rows, 100 samples). With kNew =
  // 0.2, or with fewer steps, it is 0.5 to 3% lower.
  constexpr int kPatience = 20;
  constexpr double kSmallest = 1e-5, kNew = 0.02;
  const std::size_t m = u_.size();
  for (int step = 0; step < most_steps && !finished_ && !watch.over(); ++step) {
    find_costs();
    double bound = 0.0;
    for (std::size_t p = 0; p < m; ++p)
      bound += u_[p] * problem_.need(static_cast<int>(p));
    for (const double c : costs_) bound += std::min(0.0, c);
    count_covers();
    double along = 0.0;
    for (std::size_t p = 0; p < m; ++p) {
      lacks_[p] = problem_.need(static_cast<int>(p)) - covers_[p];
      along += lacks_[p] * direction_[p];
    }
    if (bound > best_) {
      // The bound still rises at the new position, so steps become longer.
      if (along >= 0.0) scale_ = std::min(2.0, scale_ * 1.1);
      since_best_ = bound > best_ * (1.0 + 1e-6) ? 0 : since_best_ + 1;
      best_ = bound;
      best_u_ = u_;
      best_costs_ = costs_;
    } else {
      ++since_best_;
    }
    if (ceiling() >= upper) return;
    if (since_best_ >= kPatience) {
      since_best_ = 0;
      scale_ *= 0.66;
      if (scale_ < kSmallest) finished_ = true;
    }
    double square = 0.0;
    for (std::size_t p = 0; p < m; ++p) {
      direction_[p] = kNew * lacks_[p] + (1.0 - kNew) * direction_[p];
      // A pair that has enough features and no multiplier does not change.
      if (direction_[p] > 0.0 || best_u_[p] > 0.0)
        square += direction_[p] * direction_[p];
    }
    if (square <= 1e-12) {
      finished_ = true;
      return;
    }
    const double far = std::min(upper - best_, 0.05 * best_ + 0.1);
    const double length = scale_ * far / square;
    for (std::size_t p = 0; p < m; ++p)
      u_[p] = std::max(0.0, best_u_[p] + length * direction_[p]);
  }
}

}  // namespace fsknn
