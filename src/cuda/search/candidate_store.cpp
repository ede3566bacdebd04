#include "cuda/search/candidate_store.hpp"

#include <algorithm>

#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {

CandidateStore::CandidateStore(const Shape& shape, const Stream& stream)
    : counts_(shape.num_slots),
      places_(shape.num_slots),
      thresholds_(shape.num_slots),
      bounds_(shape.bounds ? shape.num_slots : 0),
      redo_places_(shape.num_rows),
      redo_count_(1) {
  clear_redo(stream);
  lists_.counts = counts_.data();
  lists_.thresholds = thresholds_.data();
  lists_.bounds = bounds_.data();
  lists_.places = places_.data();
  lists_.num_slots = shape.num_slots;
  lists_.capacity = shape.capacity;
}

void CandidateStore::hold_entries() {
  hold_entries(lists_.capacity, counts_.size());
}

void CandidateStore::hold_entries(std::int32_t capacity,
                                  std::int64_t num_lists) {
  lists_.capacity = capacity;
  entries_ = DeviceBuffer<Candidate>(num_lists * capacity);
  lists_.entries = entries_.data();
}

void CandidateStore::place(const std::int32_t* places, std::int64_t count,
                           const Stream& stream) {
  upload(places_, places, count, stream);
  lists_.num_slots = count;
}

void CandidateStore::meet_own(const std::int32_t* ids) {
  meet(places_.data(), ids, ids);
}

void CandidateStore::hold_ids(const std::int32_t* ids, std::int64_t count,
                              const Stream& stream) {
  ids_ = DeviceBuffer<std::int32_t>(count);
  upload(ids_, ids, count, stream);
  meet_own(ids_.data());
}

void CandidateStore::meet(const std::int32_t* column_places,
                          const std::int32_t* column_ids,
                          const std::int32_t* row_ids) {
  lists_.column_places = column_places;
  lists_.column_ids = column_ids;
  lists_.row_ids = row_ids;
}

void CandidateStore::clear_redo(const Stream& stream) {
  clear_from(redo_count_, 0, stream);
}

std::vector<std::int32_t> CandidateStore::counts(Slot first, Slot end,
                                                 const Stream& stream) const {
  return downloaded(counts_.data() + first.value, end.value - first.value,
                    stream);
}

double CandidateStore::num_candidates(Slot first, Slot end,
                                      const Stream& stream) const {
  double sum = 0;
  for (const std::int32_t count : counts(first, end, stream))
    sum += std::max(count, 0);
  return sum;
}

std::vector<std::int32_t> CandidateStore::to_redo(const Stream& stream) const {
  std::vector<std::int32_t> places = downloaded(
      redo_places_.data(), downloaded(redo_count_.data(), stream), stream);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace cuda
}  // namespace fsknn
