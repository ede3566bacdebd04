#include "cuda/search/exchange.hpp"

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/plan/plan.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Lists of some slots: the entries and counts from the first of them on.
struct OtherLists {
  const Candidate* entries;
  const std::int32_t* counts;
  Slot first_slot, end_slot;
};

// Appends another device's entries to the own lists, one warp a slot. The count
// of a list shows if it has no room for them, or overflowed there. Grid: x over
// slots. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    append_lists(const CandidateLists lists, const OtherLists from) {
  const std::int64_t at = warp_number();
  const std::int64_t slot = from.first_slot.value + at;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (slot >= from.end_slot.value) return;
  const std::int32_t more = from.counts[at], count = lists.counts[slot];
  if (more == 0 || is_overflowed(count)) return;
  const std::int32_t room = max(0, lists.capacity - count);
  const std::int32_t taken = max(0, min(more, room));
  const Candidate* const entries = from.entries + at * lists.capacity;
  Candidate* const list = lists.entries + slot * lists.capacity + count;
  for (std::int32_t i = lane; i < taken; i += kWarp) list[i] = entries[i];
  if (lane == 0)
    lists.counts[slot] =
        is_overflowed(more) || more > room ? lists.capacity + 1 : count + more;
}

// Sums a hash of each word and its place. Grid: any, x. Block: kThreads.
// Shared: none.
__global__ void __launch_bounds__(kThreads)
    add_words(const std::uint32_t* words, std::int64_t count,
              unsigned long long* sum) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  unsigned long long own = 0;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < count; i += step) {
    unsigned long long x = words[i] + (static_cast<unsigned long long>(i) + 1) *
                                          0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    own += x ^ (x >> 31);
  }
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    own += __shfl_xor_sync(0xffffffffu, own, gap);
  if (threadIdx.x % kWarp == 0) atomicAdd(sum, own);
}

/// Lets the current device read `other`'s memory, if possible.
bool can_read(int device, int other) {
  int can = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, other));
  if (can == 0) return false;
  const cudaError_t code = injected("cudaDeviceEnablePeerAccess")
                               ? fault_error()
                               : cudaDeviceEnablePeerAccess(other, 0);
  cudaGetLastError();  // otherwise the next check would report it
  return code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

std::uint64_t digest_of(const void* words, std::int64_t bytes,
                        const Stream& stream) {
  constexpr unsigned blocks = 1024;
  DeviceBuffer<unsigned long long> sum(1);
  clear_from(sum, 0, stream);
  add_words<<<blocks, kThreads, 0, stream.get()>>>(
      static_cast<const std::uint32_t*>(words),
      bytes / static_cast<std::int64_t>(sizeof(std::uint32_t)), sum.data());
  CUDA_CHECK(cudaGetLastError());
  return downloaded(sum.data(), stream);
}

LearntForm learnt_form(const PairFilter& filter, bool suits, const void* words,
                       std::int64_t bytes, const Stream& stream) {
  LearntForm learnt;
  learnt.form = filter.rows().form;
  learnt.centred = filter.rows().centred;
  learnt.suits = suits;
  learnt.row_bytes = filter.row_bytes();
  if (bytes > 0) learnt.digest = digest_of(words, bytes, stream);
  if (injected("another filter learnt", current_device())) learnt.digest ^= 1;
  return learnt;
}

Exchange::Exchange(FilterTeam& team, int own) : team_(team), own_(own) {
  FilterShare& share = team.shares[static_cast<std::size_t>(own)];
  for (const FilterShare& other : team.shares)
    direct_.push_back(other.device != share.device &&
                      can_read(share.device, other.device));
  share.found = &found_;
  share.merged = &merged_;
}

bool Exchange::begin(const CandidateLists& lists) {
  team_.shares[static_cast<std::size_t>(own_)].lists = lists;
  const bool all_direct =
      std::count(direct_.begin(), direct_.end(), true) == team_.size() - 1;
  if (!all_direct) {
    const std::int64_t slots = std::max<std::int64_t>(
        1, kStagedBytes / (lists.capacity * sizeof(Candidate)));
    staged_entries_ = DeviceBuffer<Candidate>(slots * lists.capacity);
    staged_counts_ = DeviceBuffer<std::int32_t>(slots);
  }
  return team_.workers->meet();
}

bool Exchange::gather(const Stream& stream) {
  if (team_.size() == 1) return true;
  found_.record(stream);
  if (!team_.workers->meet()) return false;
  for (int other = 0; other < team_.size(); ++other) {
    if (other == own_) continue;
    const FilterShare& share = team_.shares[static_cast<std::size_t>(other)];
    share.found->hold(stream);
    merge_from(share, direct_[static_cast<std::size_t>(other)], stream);
  }
  return true;
}

void Exchange::merge_from(const FilterShare& other, bool direct,
                          const Stream& stream) {
  const CandidateLists& lists = own().lists;
  const std::int64_t first = own().first_slot.value;
  const std::int64_t end = own().end_slot.value;
  const std::int64_t step = direct ? end - first : staged_counts_.size();
  for (std::int64_t slot = first; slot < end; slot += step) {
    OtherLists from;
    const std::int64_t count = std::min(step, end - slot);
    from.first_slot = {slot};
    from.end_slot = {slot + count};
    from.entries = other.lists.entries + slot * lists.capacity;
    from.counts = other.lists.counts + slot;
    if (!direct) {
      CUDA_CHECK(cudaMemcpyPeerAsync(
          staged_entries_.data(), own().device, from.entries, other.device,
          static_cast<std::size_t>(count * lists.capacity) * sizeof(Candidate),
          stream.get()));
      CUDA_CHECK(cudaMemcpyPeerAsync(
          staged_counts_.data(), own().device, from.counts, other.device,
          static_cast<std::size_t>(count) * sizeof(std::int32_t),
          stream.get()));
      from.entries = staged_entries_.data();
      from.counts = staged_counts_.data();
    }
    append_lists<<<blocks_of_warps(count), kThreads, 0, stream.get()>>>(lists,
                                                                        from);
    CUDA_CHECK(cudaGetLastError());
  }
}

bool Exchange::publish(const Stream& stream) {
  if (team_.size() == 1) return true;
  merged_.record(stream);
  if (!team_.workers->meet()) return false;
  const CandidateLists& lists = own().lists;
  for (const FilterShare& other : team_.shares) {
    if (&other == &own()) continue;
    // All devices that read the lists emptied here have finished, too.
    other.merged->hold(stream);
    const std::int64_t first = other.first_slot.value;
    const std::size_t count =
        static_cast<std::size_t>(other.end_slot.value - first);
    CUDA_CHECK(cudaMemcpyPeerAsync(lists.thresholds + first, own().device,
                                   other.lists.thresholds + first, other.device,
                                   count * sizeof(float), stream.get()));
    CUDA_CHECK(cudaMemsetAsync(lists.counts + first, 0,
                               count * sizeof(std::int32_t), stream.get()));
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
