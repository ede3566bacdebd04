// Counts all pairs of points by the bin of their value: the devices compute
// every pair in the contract's doubles.
//
// Filters would not help. With the usual number of bins, about a hundredth of
// the pairs are within a filter's error of some break. On a GPU with fast
// doubles, computing those takes as long as all pairs.

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "core/base/pieces.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/two_under_way.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/pair_counts.hpp"
#include "cuda/search/pair_chunks.hpp"

namespace fsknn {
namespace cuda {
namespace {

// For resident points: smaller chunks waste less on the diagonal.
constexpr std::int64_t kResidentSide = 4096;

/// The counts of one device.
class CountedPairs {
 public:
  CountedPairs(const PairsWork& work, const PairBins& bins, Workers& workers)
      : work_(work),
        bins_(bins),
        workers_(workers),
        chunks_(work),
        breaks_(static_cast<std::int64_t>(bins.breaks.size())),
        counts_(static_cast<std::int64_t>(bins.num_slots())),
        extremes_(2),
        beyond_(1) {
    const Stream& stream = chunks_.stream();
    upload(breaks_, bins.breaks.data(), breaks_.size(), stream);
    clear_from(counts_, 0, stream);
    const unsigned long long none[2] = {order_key_of(HUGE_VAL),
                                        order_key_of(-HUGE_VAL)};
    upload(extremes_, none, 2, stream);
    clear_from(beyond_, 0, stream);
    stream.wait();
  }
  CountedPairs(const CountedPairs&) = delete;
  CountedPairs& operator=(const CountedPairs&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~CountedPairs() { cudaStreamSynchronize(chunks_.stream().get()); }

  void run(std::atomic<std::int64_t>& next) {
    PairsToCount step;
    step.breaks = breaks_.data();
    step.num_breaks = breaks_.size();
    step.similarity = bins_.similarity;
    step.counts = counts_.data();
    step.extremes = extremes_.data();
    step.beyond = beyond_.data();
    TwoUnderWay under_way;
    chunks_.run(next, [&](const Panel& rows, const Panel& columns,
                          const Chunk& chunk) {
      step.chunk = chunk;
      step.row0 = rows.first.value;
      step.column0 = columns.first.value;
      start_counting_pairs(*work_.request.metric, step, chunks_.stream().get());
      under_way.end(chunks_.stream());
      under_way.begin();
      return workers_.go_on();
    });
  }

  /// Must be called by one thread at a time.
  void add_to(PairCounts& all) {
    const Stream& stream = chunks_.stream();
    std::vector<unsigned long long> counts(bins_.num_slots());
    unsigned long long extremes[2];
    std::int32_t beyond = 0;
    download(counts.data(), counts_, counts_.size(), stream);
    download(extremes, extremes_, 2, stream);
    download(&beyond, beyond_, 1, stream);
    stream.wait();
    if (beyond != 0) throw RangeFailure();
    for (std::size_t slot = 0; slot < counts.size(); ++slot)
      all.count[slot] += static_cast<std::int64_t>(counts[slot]);
    all.least = std::min(all.least, value_of_key(extremes[0]));
    all.largest = std::max(all.largest, value_of_key(extremes[1]));
  }

 private:
  const PairsWork& work_;
  const PairBins& bins_;
  Workers& workers_;
  PairChunks chunks_;
  DeviceBuffer<double> breaks_;
  DeviceBuffer<unsigned long long> counts_, extremes_;
  DeviceBuffer<std::int32_t> beyond_;
};

}  // namespace

PairCounts count_pairs(const Request& asked, const PairBins& bins,
                       const RowSource& points, Progress* progress,
                       Stats* stats) {
  const Request request = suited(asked, points, nullptr, progress);
  if (!counts_pairs(request))
    throw std::logic_error(
        "GPUs do not count what count_pairs() was asked for");
  check_metric(*request.metric);
  const Clock::time_point start = Clock::now();
  const UsedDevices gpus(request.devices);
  PlacedPoints placed(points, request.skip, false);
  PairCounts counts;
  counts.count.assign(bins.num_slots(), 0);
  counts.num_points = placed.size();
  if (placed.size() < 2) return counts;
  PairsWork work(
      request, placed, placed,
      common_exponent(request, points, nullptr, request.num_threads));
  work.bytes_besides = 16.0 * static_cast<double>(bins.num_slots());
  work.similarities = PairValue(*request.metric, bins.similarity).of_sums();
  const double usable =
      facts_of(gpus.all(), request.max_device_memory).bytes_usable();
  PointStore store;
  work.store = &store;
  work.side = std::min(side_beside_points(work, gpus, usable), kResidentSide);
  if (work.side == 0) {
    work.store = nullptr;
    work.side = side_in_panels(work, usable, gpus.id(0));
  }
  const int count =
      static_cast<int>(std::min<std::int64_t>(gpus.count(), num_splits(work)));
  work.num_threads = std::max(1, request.num_threads / count);
  const double seconds_prepare = seconds_since(start);

  Stats found;
  Workers workers(progress, num_chunks(work));
  std::atomic<std::int64_t> next{0};
  std::mutex adding;
  run_parts(workers, gpus, count, found, [&](int) {
    CountedPairs part(work, bins, workers);
    part.run(next);
    const std::lock_guard<std::mutex> held(adding);
    part.add_to(counts);
    return Stats();
  });
  const double n = static_cast<double>(placed.size());
  found.pairs_exact = n * (n - 1) / 2;
  found.streamed = work.store == nullptr;
  note(found, gpus, start, seconds_prepare, stats);
  return counts;
}

}  // namespace cuda
}  // namespace fsknn
