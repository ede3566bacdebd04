#include "cpu/search/similarity_bytes.hpp"

#include <cmath>

#include "core/base/pieces.hpp"
#include "core/search/triples.hpp"
#include "cpu/triples/triples_kernels.hpp"

namespace fsknn {
namespace cpu {
namespace {

std::uint8_t byte_of(double similarity) {
  return static_cast<std::uint8_t>(std::floor(255.0 * similarity));
}

}  // namespace

SimilarityBytes::SimilarityBytes(const Request& request, int num_way,
                                 const RowSource& source, Progress* progress)
    : request_(request),
      num_way_(num_way),
      kernels_(choose_kernels(request.instruction_set)),
      points_(prepare_triples(request, source, kernels_.prepare_row,
                              request.num_threads, progress)) {}

bool SimilarityBytes::advance() {
  if (num_way_ == 2) return ++second_ < points_.size();
  if (++third_ < points_.size() && second_ > 0) return true;
  third_ = ++second_ + 1;
  return third_ < points_.size();
}

std::vector<std::uint8_t> SimilarityBytes::next(std::int64_t most,
                                                Progress* progress) {
  std::vector<Row> rows;
  std::int64_t count = 0;
  while (count < most && advance()) {
    rows.push_back({second_, third_, count});
    count += second_;
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  const double operations =
      static_cast<double>(count) * static_cast<double>(points_.padded);
  run_pieces(static_cast<std::int64_t>(rows.size()),
             useful_threads(request_.num_threads, operations),
             {progress, 0.0, 1.0}, [&] {
               return [&](std::int64_t r) {
                 const Row& row = rows[static_cast<std::size_t>(r)];
                 fill(row, bytes.data() + row.at);
               };
             });
  return bytes;
}

void SimilarityBytes::fill(const Row& row, std::uint8_t* to) const {
  const double second = points_.sums[row.second];
  if (num_way_ == 3) {
    const TripleKernels& kernels = triple_kernels(kernels_);
    const double* const b = points_.row(Place{row.second});
    const double* const c = points_.row(Place{row.third});
    for (std::int64_t i = 0; i < row.second; ++i) {
      to[i] = byte_of(similarity_of_three(
          kernels.exact(points_.row(Place{i}), b, c, points_.padded),
          points_.sums[i], second, points_.sums[row.third]));
      poll_after(static_cast<double>(points_.padded));
    }
    return;
  }
  constexpr std::int64_t kAtOnce = 256;
  Pair pairs[kAtOnce];
  double sums[kAtOnce];
  for (std::int64_t first = 0; first < row.second; first += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, row.second - first);
    for (std::int64_t i = 0; i < count; ++i)
      pairs[i] = {static_cast<std::int32_t>(first + i),
                  static_cast<std::int32_t>(row.second)};
    kernels_.exact(Accumulation::smaller_sum, points_.rows.data(),
                   points_.rows.data(), points_.padded, pairs, count, sums);
    for (std::int64_t i = 0; i < count; ++i)
      to[first + i] = byte_of(request_.metric->similarity(
          sums[i], points_.sums[first + i], second));
    poll_after(static_cast<double>(count * points_.padded));
  }
}

}  // namespace cpu
}  // namespace fsknn
