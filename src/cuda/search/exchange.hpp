#pragma once

// The exchange between devices of a filtered search after each round. Each
// device has lists for all slots, and fills them from the pairs of its own
// slabs. Each slot has an owner, which gathers the others' candidates for it,
// cuts, and publishes the new threshold.

#include <cstdint>
#include <vector>

#include "cuda/backend.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/learnt_forms.hpp"

namespace fsknn {
namespace cuda {

/// Returns a digest of device memory, in whole words of 32 bits: equal data
/// have equal digests, other data almost never. Waits for the stream.
std::uint64_t digest_of(const void* words, std::int64_t bytes,
                        const Stream& stream);

/// Makes the record for LearntForms. words, bytes: data that depend on what the
/// filter learnt.
LearntForm learnt_form(const PairFilter& filter, bool suits, const void* words,
                       std::int64_t bytes, const Stream& stream);

/// One device's part of a filtered search, as the others see it.
struct FilterShare {
  int device = 0;                         ///< CUDA's own number
  Slot first_slot = {0}, end_slot = {0};  ///< owned
  CandidateLists lists;
  const Event* found = nullptr;   ///< its pairs of the round are in its lists
  const Event* merged = nullptr;  ///< its own slots are cut
};

/// All shares: made before the workers start, filled in by each for itself.
struct FilterTeam {
  /// Takes the first `count` devices.
  FilterTeam(const std::vector<Device>& devices, int count)
      : shares(static_cast<std::size_t>(count)) {
    for (std::size_t at = 0; at < shares.size(); ++at)
      shares[at].device = devices[at].cuda_id;
  }
  Workers* workers = nullptr;
  std::vector<FilterShare> shares;
  /// The filter's rows of all slots, where they are in the host's memory.
  PinnedBuffer<unsigned char> host_rows;
  int size() const { return static_cast<int>(shares.size()); }
};

/// The exchange of one device with the others. Used by its worker.
class Exchange {
 public:
  Exchange(FilterTeam& team, int own);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Sets the slots that this device owns; before begin().
  void own_slots(Slot first, Slot end) {
    share().first_slot = first;
    share().end_slot = end;
  }
  /// Publishes this device's lists. Returns whether to continue.
  bool begin(const CandidateLists& lists);

  /// Copies what the others found for the own slots into the own lists, at the
  /// end of a round. Returns whether to continue.
  bool gather(const Stream& stream);

  /// Copies the others' thresholds here and empties their lists, after the own
  /// slots were cut. Returns whether to continue.
  bool publish(const Stream& stream);

  /// Ends the exchange after the last round, when no work is in progress here.
  /// Returns whether to continue: then no other device uses this one's lists
  /// any more.
  bool end() {
    if (!team_.workers->meet()) return false;
    share().lists = {};
    return true;
  }

 private:
  FilterShare& share() { return team_.shares[static_cast<std::size_t>(own_)]; }
  const FilterShare& own() const {
    return team_.shares[static_cast<std::size_t>(own_)];
  }
  void merge_from(const FilterShare& other, bool direct, const Stream& stream);

  FilterTeam& team_;
  int own_;
  std::vector<bool> direct_;  ///< whether each share's memory can be read
                              ///< directly
  Event found_, merged_;
  // Copies of lists of a device whose memory cannot be read from here.
  DeviceBuffer<Candidate> staged_entries_;
  DeviceBuffer<std::int32_t> staged_counts_;
};

}  // namespace cuda
}  // namespace fsknn
