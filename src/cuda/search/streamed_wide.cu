#include "cuda/search/streamed_wide.cuh"

#include <algorithm>

#include "cuda/exact/settle.cuh"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

// Each is ranked against each: more are done in doubles.
constexpr std::int32_t kMostWaiting = 1024;

}  // namespace

bool StreamedWide::run(const Rows& rows, const std::int32_t* slot_ranks) {
  const std::int64_t count = static_cast<std::int64_t>(rows.ids.size());
  const std::int64_t most = std::min(filter_.most_rows(), panel_.most_rows());
  for (std::int64_t first = 0; first < count; first += most)
    if (!batch(rows, static_cast<std::size_t>(first),
               std::min(most, count - first), slot_ranks))
      return false;
  return true;
}

bool StreamedWide::batch(const Rows& rows, std::size_t first,
                         std::int64_t count, const std::int32_t* slot_ranks) {
  filter_.begin(rows.slots.data() + first, rows.places.data() + first, count);
  from_.fetch_some(rows.ids.data() + first, count, panel_);
  const Panel panel = panel_.get(stream_);
  const bool go_on =
      filter_.run({panel.rows, panel.sums, from_.points().padded});
  panel_.release(stream_);
  if (!go_on) return false;

  const std::size_t size = static_cast<std::size_t>(count);
  std::vector<std::int32_t> counts(size);
  CUDA_CHECK(cudaMemcpyAsync(counts.data(), filter_.lists().counts,
                             size * sizeof(std::int32_t),
                             cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
  std::vector<std::int64_t> first_pair(size + 1, 0);
  for (std::size_t row = 0; row < size; ++row) {
    std::int32_t& pairs = counts[row];
    if (pairs < k_ || pairs > kMostWaiting) pairs = 0;
    first_pair[row + 1] = first_pair[row] + pairs;
  }
  counts_.insert(counts_.end(), counts.begin(), counts.end());
  if (first_pair.back() == 0) return true;
  DeviceBuffer<std::int64_t> d_first(count + 1);
  DeviceBuffer<std::int32_t> d_columns(first_pair.back());
  upload(d_first, first_pair.data(), d_first.size(), stream_);
  PairsFromLists from;
  from.lists = filter_.lists();
  from.own_slots = filter_.slots();
  from.slot_ranks = slot_ranks;
  from.num_owned = count;
  WaitingPairs to;
  to.first = d_first.data();
  to.columns = d_columns.data();
  start_waiting(from, to, stream_.get());
  const std::size_t before = columns_.size();
  columns_.resize(before + static_cast<std::size_t>(d_columns.size()));
  download(columns_.data() + before, d_columns, d_columns.size(), stream_);
  stream_.wait();
  return true;
}

}  // namespace cuda
}  // namespace fsknn
