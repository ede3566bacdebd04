#pragma once

// Filters rows again, with longer lists, if their candidates overflowed.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/search/candidate_store.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/rounds.hpp"

namespace fsknn {
namespace cuda {

/// Compares rows by the same filter as before with all points, with much longer
/// lists. It starts from the thresholds that their previous candidates justify.
class WideFilter {
 public:
  /// pass: the search's. lists: its lists, of all slots, which are no longer
  /// needed: their memory is reused if it is large enough. padded: features of
  /// a prepared row. num_rows: to recompute. bounds: certain thresholds in
  /// device memory, if the filter has learnt again since then; null: the lists'
  /// own.
  WideFilter(const FilterPass& pass, const CandidateLists& lists,
             std::int64_t padded, const Stream& stream, std::int64_t num_rows,
             const float* bounds = nullptr);

  /// Returns whether longer lists than the search's exist.
  static bool helps(const CandidateLists& lists) {
    return lists.capacity < kLargestCapacity && lists.bounds != nullptr;
  }
  std::int64_t most_rows() const { return most_rows_; }

  /// Sets the next rows, at most most_rows(), by their slots in the search's
  /// lists or among the bounds.
  void begin(const std::int32_t* slots, const std::int32_t* places,
             std::int64_t num_rows);
  /// [num_rows] of the rows, device memory.
  const std::int32_t* places() const { return candidates_.lists().places; }
  /// Compares those rows, prepared, with all points. Returns whether to
  /// continue.
  bool run(const PreparedRows& rows);

  /// Returns the candidates, row r in slot r, and the rows for which even these
  /// lists are too short.
  CandidateStore& candidates() { return candidates_; }
  /// [rows] 0, 1, ..., device memory.
  const std::int32_t* slots() const { return own_slots_.data(); }

 private:
  const Stream& stream_;
  const WideRows shape_;
  const std::int64_t most_rows_;
  const float* const bounds_;
  FilterForm form_;
  CandidateStore candidates_;
  DeviceBuffer<std::int32_t> slots_, own_slots_;
  FilterPass pass_;
  std::vector<std::int32_t> slot_places_;  ///< in transfer to the device
  std::int64_t num_rows_ = 0;
};

/// For each row: its place, and its slot in the search's lists.
struct RedoneRows {
  std::vector<std::int32_t> places, slots;
  std::int64_t size() const { return static_cast<std::int64_t>(places.size()); }
};

/// Filters the rows by a wider filter, at most `most` at a time. bring(first,
/// count) returns those rows, prepared; take(first, count) processes their
/// candidates. Returns whether to continue.
template <class Bring, class Take>
bool filter_widely(WideFilter& filter, const RedoneRows& rows,
                   std::int64_t most, Bring bring, Take take) {
  most = std::min(most, filter.most_rows());
  for (std::int64_t first = 0; first < rows.size(); first += most) {
    const std::int64_t count = std::min(most, rows.size() - first);
    filter.begin(rows.slots.data() + first, rows.places.data() + first, count);
    if (!filter.run(bring(first, count))) return false;
    take(first, count);
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
