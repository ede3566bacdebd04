#pragma once

// Rows whose candidates overflowed, filtered again with longer lists.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/search/candidate_store.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/rounds.hpp"

namespace fsknn {
namespace cuda {

/// Rows by the same filter as before against all points, with much longer lists
/// and from the thresholds that what they had found is good for.
class WideFilter {
 public:
  /// pass: the search's. lists: its lists, of all slots, which are not needed
  /// any more: their memory is used, where there is enough. padded: features of
  /// a prepared row. num_rows: to be done. bounds: where the filter has learnt
  /// again since then, the thresholds that are certain by what it learnt,
  /// device memory; null: the lists' own.
  WideFilter(const FilterPass& pass, const CandidateLists& lists,
             std::int64_t padded, const Stream& stream, std::int64_t num_rows,
             const float* bounds = nullptr);

  /// Whether there are longer lists than the search's.
  static bool helps(const CandidateLists& lists) {
    return lists.capacity < kLargestCapacity && lists.bounds != nullptr;
  }
  std::int64_t most_rows() const { return most_rows_; }

  /// The next rows, no more than most_rows(), are these in the search's lists,
  /// or among the bounds.
  void begin(const std::int32_t* slots, const std::int32_t* places,
             std::int64_t num_rows);
  /// [num_rows] of the rows, device memory.
  const std::int32_t* places() const { return candidates_.lists().places; }
  /// Those rows, prepared, against all points. Returns whether to go on.
  bool run(const PreparedRows& rows);

  /// What was found, row r in slot r, and the rows that even these lists are
  /// too short for.
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
  std::vector<std::int32_t> slot_places_;  ///< on their way to the device
  std::int64_t num_rows_ = 0;
};

/// Of each row: its place, and its slot in the search's lists.
struct RedoneRows {
  std::vector<std::int32_t> places, slots;
  std::int64_t size() const { return static_cast<std::int64_t>(places.size()); }
};

/// The rows by a wider filter, at most `most` at a time. bring(first, count)
/// gives those rows, prepared; take(first, count) deals with what was found for
/// them. Returns whether to go on.
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
