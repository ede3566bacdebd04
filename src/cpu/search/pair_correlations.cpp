#include "cpu/search/pair_correlations.hpp"

#include <algorithm>
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

}  // namespace cpu
}  // namespace fsknn
