#include "cpu/search/pair_correlations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/pieces.hpp"
#include "cpu/search/exact_rows.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The number of rows in a thread's task.
constexpr std::int64_t kBlock = 64;

class PairWorker {
 public:
  PairWorker(const ExactPoints& exact, const ListMatrix& pairs, double missing,
             double* out)
      : exact_(exact),
        pairs_(pairs),
        missing_(missing),
        out_(out),
        sums_of_(exact.kernels, Accumulation::dot, exact.points, exact.points) {
  }

  void operator()(std::int64_t block) {
    const std::int64_t end = std::min(pairs_.rows, (block + 1) * kBlock);
    for (std::int64_t row = block * kBlock; row < end; ++row) one_row(row);
  }

 private:
  void one_row(std::int64_t row) {
    const Place place = exact_.place(static_cast<std::int32_t>(row));
    ranks_.clear();
    for (std::int64_t r = 0; r < pairs_.k; ++r) {
      const std::int32_t other = pairs_.point(row, r);
      const bool known =
          place.value >= 0 && other >= 0 && exact_.place(other).value >= 0;
      if (known)
        ranks_.push_back(r);
      else
        out_[pairs_.at(row, r)] = missing_;
    }
    if (ranks_.empty()) return;
    const auto other = [&](std::int64_t i) {
      return exact_.place(
          pairs_.point(row, ranks_[static_cast<std::size_t>(i)]));
    };
    const std::int64_t count = static_cast<std::int64_t>(ranks_.size());
    const double* const sum = sums_of_(place, count, other);
    const Buffer<double>& sums = exact_.points.sums;
    for (std::int64_t i = 0; i < count; ++i)
      out_[pairs_.at(row, ranks_[static_cast<std::size_t>(i)])] =
          exact_.rule.correlation(sum[i], sums[place.value],
                                  sums[other(i).value]);
  }

  const ExactPoints& exact_;
  const ListMatrix& pairs_;
  const double missing_;
  double* const out_;
  RowSums sums_of_;
  std::vector<std::int64_t> ranks_;  ///< of the row's pairs with an r
};

// Work on blocks of rows of a matrix, where each row meets those of its list.
template <class MakeWorker>
void over_rows(std::int64_t rows, double operations, int num_threads,
               Progress* progress, MakeWorker make_worker) {
  run_pieces((rows + kBlock - 1) / kBlock,
             useful_threads(num_threads, operations), {progress, 0.0, 1.0},
             make_worker,
             [&](auto& worker, std::int64_t block) {
               const std::int64_t end = std::min(rows, (block + 1) * kBlock);
               for (std::int64_t row = block * kBlock; row < end; ++row)
                 worker(row);
             },
             [](auto&) {});
}

/// Adds the influence of each sample on factor * atanh(r), where u and v have
/// length 1 and product r. Returns the sum of its squares.
double add_influence(const double* u, const double* v, double r, double factor,
                     std::int64_t size, double* out) {
  // atanh() is not steeper where fisher_z() is capped.
  const double slope = factor / std::max(1.0 - r * r, 2e-12);
  double squares = 0.0;
  for (std::int64_t i = 0; i < size; ++i) {
    const double one =
        slope * (u[i] * v[i] - 0.5 * r * (u[i] * u[i] + v[i] * v[i]));
    out[i] += one;
    squares += one * one;
  }
  return squares;
}

}  // namespace

void pair_correlations(const ExactPoints& exact, const ListMatrix& pairs,
                       int num_threads, Progress* progress, double missing,
                       double* out) {
  const double operations = static_cast<double>(pairs.rows) *
                            static_cast<double>(pairs.k) *
                            static_cast<double>(exact.points.padded);
  run_pieces((pairs.rows + kBlock - 1) / kBlock,
             useful_threads(num_threads, operations), {progress, 0.0, 1.0},
             [&] { return PairWorker(exact, pairs, missing, out); });
}

void list_variances(const ExactPoints& exact, const ListMeans& means,
                    int num_threads, Progress* progress, double* of_pairs,
                    double* out) {
  const ListMatrix& pairs = means.pairs;
  const std::int64_t rows = pairs.rows, width = exact.points.padded;
  const double k = static_cast<double>(pairs.k);
  const double operations =
      static_cast<double>(rows) * k * static_cast<double>(width);
  const auto over = [&](double times, auto make_worker) {
    over_rows(rows, times * operations, num_threads, progress, make_worker);
  };
  // Rows of length 1, and zeros for points that were skipped.
  Buffer<double> unit(rows * width), influence(rows * width);
  std::fill_n(unit.data(), unit.size(), 0.0);
  std::fill_n(influence.data(), influence.size(), 0.0);
  over(1.0 / k, [&] {
    return [&, reader = RowReader(exact.points)](std::int64_t row) mutable {
      const Place place = exact.place(static_cast<std::int32_t>(row));
      if (place.value < 0) return;
      const double* const values = reader(place);
      double squares = 0.0;
      for (std::int64_t i = 0; i < width; ++i) squares += values[i] * values[i];
      const double scale = 1.0 / std::sqrt(squares);
      for (std::int64_t i = 0; i < width; ++i)
        unit.data()[row * width + i] = scale * values[i];
    };
  });
  over(1.0, [&] {
    return [&](std::int64_t row) {
      for (std::int64_t rank = 0; rank < pairs.k; ++rank) {
        const std::int64_t at = pairs.at(row, rank);
        const std::int32_t other = pairs.point(row, rank);
        of_pairs[at] = std::numeric_limits<double>::quiet_NaN();
        if (other < 0 || std::isnan(means.r[at])) continue;
        of_pairs[at] = k * k *
                       add_influence(unit.data() + row * width,
                                     unit.data() + other * width, means.r[at],
                                     means.towards[at] / k, width,
                                     influence.data() + row * width);
      }
    };
  });
  over(1.0, [&] {
    return [&, sum = std::vector<double>(static_cast<std::size_t>(width))](
               std::int64_t row) mutable {
      if (pairs.empty(row)) {
        out[row] = std::numeric_limits<double>::quiet_NaN();
        return;
      }
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::int64_t rank = 0; rank < pairs.k; ++rank) {
        const std::int64_t other = pairs.point(row, rank);
        if (other < 0) continue;
        for (std::int64_t i = 0; i < width; ++i)
          sum[static_cast<std::size_t>(i)] +=
              influence.data()[other * width + i];
      }
      double squares = 0.0;
      for (std::int64_t i = 0; i < width; ++i) {
        const double one = influence.data()[row * width + i] / 3.0 +
                           sum[static_cast<std::size_t>(i)] * (2.0 / 3.0 / k);
        squares += one * one;
      }
      out[row] = squares;
    };
  });
}

}  // namespace cpu
}  // namespace fsknn
