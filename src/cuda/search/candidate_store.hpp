#pragma once

// Owns the memory of candidate lists (exact/candidates.hpp); kernels receive
// views.

#include <cstdint>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/exact/candidates.hpp"

namespace fsknn {
namespace cuda {

/// Lists of some slots on the current device, the points in the slots, and the
/// rows to recompute. Views are valid as long as it lives.
class CandidateStore {
 public:
  struct Shape {
    std::int64_t num_slots = 0;
    std::int32_t capacity = 0;  ///< of a list
    std::int64_t num_rows = 0;  ///< points with lists here: all may be
                                ///< recomputed
    bool bounds = true;         ///< whether rows may be filtered again
  };
  /// Allocates all but the entries and the ids.
  CandidateStore(const Shape& shape, const Stream& stream);
  CandidateStore(const CandidateStore&) = delete;
  CandidateStore& operator=(const CandidateStore&) = delete;

  /// Allocates entries of its own.
  void hold_entries();
  /// Allocates entries with another capacity, for this many lists.
  void hold_entries(std::int32_t capacity, std::int64_t num_lists);
  /// Gives them to the lists of as many slots, from `first` on.
  void use_entries(Slot first) {
    lists_.entries = entries_.data() - first.value * lists_.capacity;
  }
  /// Uses the entries of lists that are no longer needed, and whose memory
  /// stays valid.
  void borrow_entries(const CandidateLists& from) {
    lists_.entries = from.entries;
  }

  /// Uses the first `count` slots, with the points at these places (-1: none).
  /// `places` must stay valid until the stream has copied it.
  void place(const std::int32_t* places, std::int64_t count,
             const Stream& stream);
  /// Does the same where the device writes the places, to the returned memory,
  /// and the counts, thresholds and bounds.
  std::int32_t* place_there(std::int64_t count) {
    lists_.num_slots = count;
    return places_.data();
  }
  /// Makes columns the same slots. ids: by place, device memory that must stay
  /// valid.
  void meet_own(const std::int32_t* ids);
  /// Does the same with ids [count] copied from the host.
  void hold_ids(const std::int32_t* ids, std::int64_t count,
                const Stream& stream);
  /// Makes columns other points, in device memory that must stay valid; see
  /// CandidateLists.
  void meet(const std::int32_t* column_places, const std::int32_t* column_ids,
            const std::int32_t* row_ids);

  /// Returns the lists of the slots in use.
  const CandidateLists& lists() const { return lists_; }
  /// Returns all lists that have memory, wherever their slots begin.
  CandidateLists all_lists() {
    CandidateLists all = lists_;
    if (entries_.size() > 0) all.entries = entries_.data();
    all.num_slots =
        entries_.size() > 0 ? entries_.size() / all.capacity : counts_.size();
    return all;
  }
  RedoRows redo() { return {redo_places_.data(), redo_count_.data()}; }
  void clear_redo(const Stream& stream);

  // The following functions wait for the stream.

  /// Returns the counts of slots first .. end - 1.
  std::vector<std::int32_t> counts(Slot first, Slot end,
                                   const Stream& stream) const;
  /// Returns the number of candidates in lists that have not overflowed.
  double num_candidates(Slot first, Slot end, const Stream& stream) const;
  /// Returns the places of rows to recompute, ascending.
  std::vector<std::int32_t> to_redo(const Stream& stream) const;

 private:
  DeviceBuffer<std::int32_t> counts_, places_;
  DeviceBuffer<float> thresholds_, bounds_;
  DeviceBuffer<Candidate> entries_;
  DeviceBuffer<std::int32_t> ids_, redo_places_, redo_count_;
  CandidateLists lists_;
};

}  // namespace cuda
}  // namespace fsknn
