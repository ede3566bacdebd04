#pragma once

// What the devices of a filtered search show each other between rounds. Each
// has lists for all slots and fills them by the pairs of its own slabs; each
// slot has an owner, who gathers what the others found for it, cuts, and lets
// them know the new threshold.

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

/// Of so many bytes of device memory, whole words of 32 bits: the same of the
/// same, and hardly ever of others. Waits for the stream.
std::uint64_t digest_of(const void* words, std::int64_t bytes,
                        const Stream& stream);

/// For LearntForms. words, bytes: what shows what the filter learnt.
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

/// All shares; made before the workers start, filled in by each for itself.
struct FilterTeam {
  /// The first `count` devices.
  FilterTeam(const std::vector<Device>& devices, int count)
      : shares(static_cast<std::size_t>(count)) {
    for (std::size_t at = 0; at < shares.size(); ++at)
      shares[at].device = devices[at].cuda_id;
  }
  Workers* workers = nullptr;
  std::vector<FilterShare> shares;
  /// The filter's rows of all slots, where they stand in the host's memory.
  PinnedBuffer<unsigned char> host_rows;
  int size() const { return static_cast<int>(shares.size()); }
};

/// One device's dealings with the others. Used by its worker.
class Exchange {
 public:
  Exchange(FilterTeam& team, int own);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// The slots that this device owns; before begin().
  void own_slots(Slot first, Slot end) {
    share().first_slot = first;
    share().end_slot = end;
  }
  /// Shows the others this device's lists. Returns whether to go on.
  bool begin(const CandidateLists& lists);

  /// At the end of a round: what the others found for the own slots comes into
  /// the own lists. Returns whether to go on.
  bool gather(const Stream& stream);

  /// After the own slots were cut: the others' thresholds come here, and their
  /// lists are emptied. Returns whether to go on.
  bool publish(const Stream& stream);

  /// After the last round, when nothing is under way here. Returns whether to
  /// go on: then no other device uses this one's lists any more.
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
  Event found_, merged_;
  // Lists of some slots of a device whose memory cannot be read from here.
  DeviceBuffer<Candidate> staged_entries_;
  DeviceBuffer<std::int32_t> staged_counts_;
};

}  // namespace cuda
}  // namespace fsknn
