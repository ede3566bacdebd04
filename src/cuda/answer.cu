#include "cuda/answer.cuh"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/errors.hpp"
#include "cuda/plan.hpp"
#include "cuda/transfer.cuh"

namespace fsknn {
namespace cuda {

AnswerWriter::AnswerWriter(const Neighbours& out, std::int64_t most_rows,
                           std::int64_t k)
    : out_(out),
      slice_ranks_(ranks_at_a_time(most_rows, k)),
      slice_distance_(most_rows * slice_ranks_),
      slice_index_(most_rows * slice_ranks_),
      h_distance_(most_rows * slice_ranks_),
      h_index_(most_rows * slice_ranks_) {
  if (out.correlation == nullptr) return;
  slice_correlation_ = DeviceBuffer<double>(most_rows * slice_ranks_);
  h_correlation_ = PinnedBuffer<double>(most_rows * slice_ranks_);
}

void AnswerWriter::write(const Lists& lists, std::int64_t num_rows,
                         const std::int32_t* ids, CorrelationOf from,
                         const Stream& stream) {
  stream.wait();
  const auto start = std::chrono::steady_clock::now();
  Slice slice;
  slice.lists = lists;
  slice.num_rows = num_rows;
  slice.distance = slice_distance_.data();
  slice.index = slice_index_.data();
  from.correlation = slice_correlation_.data();
  // Last ranks first: a distance that is too large is seen before a list that
  // it left unfilled is read from.
  for (std::int64_t end = lists.k; end > 0; end = slice.rank0) {
    slice.rank0 = std::max<std::int64_t>(0, end - slice_ranks_);
    slice.num_ranks = end - slice.rank0;
    const std::int64_t size = slice.num_ranks * num_rows;
    start_slice(slice, stream.get());
    download(h_distance_.data(), slice_distance_, size, stream);
    download(h_index_.data(), slice_index_, size, stream);
    stream.wait();
    const double* farthest = h_distance_.data() + size - num_rows;
    for (std::int64_t r = 0; r < num_rows; ++r)
      if (!(farthest[r] < HUGE_VAL)) throw RangeFailure();
    if (out_.correlation != nullptr) {
      start_correlations(slice, from, stream.get());
      download(h_correlation_.data(), slice_correlation_, size, stream);
      stream.wait();
    }
    copy_out(slice, ids);
  }
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                            start)
                  .count();
}

void AnswerWriter::copy_out(const Slice& slice, const std::int32_t* ids) {
  for (std::int64_t rank = 0; rank < slice.num_ranks; ++rank) {
    const std::int64_t from = rank * slice.num_rows;
    const std::int64_t to = (slice.rank0 + rank) * out_.rows;
    for (std::int64_t r = 0; r < slice.num_rows; ++r) {
      out_.index[to + ids[r]] = h_index_.data()[from + r] + 1;
      out_.distance[to + ids[r]] = h_distance_.data()[from + r];
    }
    if (out_.correlation == nullptr) continue;
    for (std::int64_t r = 0; r < slice.num_rows; ++r)
      out_.correlation[to + ids[r]] = h_correlation_.data()[from + r];
  }
}

}  // namespace cuda
}  // namespace fsknn
