#pragma once

// The memory of candidate lists (exact/candidates.hpp). Who asks for lists asks
// here; what kernels get is a view.

#include <cstdint>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/exact/candidates.hpp"

namespace fsknn {
namespace cuda {

/// Lists of some slots on the current device, who stands in the slots, and
/// which rows are to be done again. The views hold for as long as it lives.
class CandidateStore {
 public:
  struct Shape {
    std::int64_t num_slots = 0;
    std::int32_t capacity = 0;  ///< of a list
    std::int64_t num_rows = 0;  ///< points with lists here: all may be redone
    bool bounds = true;         ///< whether rows may be filtered again
  };
  /// All but the entries and the ids.
  CandidateStore(const Shape& shape, const Stream& stream);
  CandidateStore(const CandidateStore&) = delete;
  CandidateStore& operator=(const CandidateStore&) = delete;

  /// Entries of its own, from here on.
  void hold_entries();
  /// Entries in memory of lists that are not needed any more, and stay.
  void borrow_entries(const CandidateLists& from) {
    lists_.entries = from.entries;
  }

  /// The first `count` slots are used, with the points at these places (-1:
  /// none). `places` must stay until the stream has come by.
  void place(const std::int32_t* places, std::int64_t count,
             const Stream& stream);
  /// The same, where the device writes the places, which it is given, and the
  /// counts, thresholds and bounds.
  std::int32_t* place_there(std::int64_t count) {
    lists_.num_slots = count;
    return places_.data();
  }
  /// Columns are the same slots. ids: by place, device memory, that stay.
  void meet_own(const std::int32_t* ids);
  /// The same, of ids [count] that are copied from the host.
  void hold_ids(const std::int32_t* ids, std::int64_t count,
                const Stream& stream);
  /// Columns are others: device memory that stays; see CandidateLists.
  void meet(const std::int32_t* column_places, const std::int32_t* column_ids,
            const std::int32_t* row_ids);

  /// Of the slots in use.
  const CandidateLists& lists() const { return lists_; }
  /// Of all slots that there is memory for.
  CandidateLists all_lists() const {
    CandidateLists all = lists_;
    all.num_slots = counts_.size();
    return all;
  }
  RedoRows redo() { return {redo_places_.data(), redo_count_.data()}; }
  void clear_redo(const Stream& stream);

  // These wait for the stream.

  /// Of slots first .. end - 1.
  std::vector<std::int32_t> counts(Slot first, Slot end,
                                   const Stream& stream) const;
  /// How many candidates those have whose lists have not overflowed.
  double num_candidates(Slot first, Slot end, const Stream& stream) const;
  /// The places of rows that are to be done again, ascending.
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
