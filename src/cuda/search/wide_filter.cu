#include "cuda/search/wide_filter.hpp"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Starts lists from the known bounds of their rows. Grid: x over slots of `to`.
// Block: any. Shared: none.
__global__ void start_from_bounds(const float* bounds,
                                  const std::int32_t* slots,
                                  std::int64_t num_rows,
                                  const CandidateLists to,
                                  std::int32_t* own_slots) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= to.num_slots) return;
  to.counts[row] = 0;
  own_slots[row] = static_cast<std::int32_t>(row);
  to.thresholds[row] = row < num_rows ? bounds[slots[row]] : CUDART_NAN_F;
}

}  // namespace

WideFilter::WideFilter(const FilterPass& pass, const CandidateLists& lists,
                       std::int64_t padded, const Stream& stream,
                       std::int64_t num_rows, const float* bounds)
    : stream_(stream),
      shape_(lists.num_slots, lists.capacity, pass.slot_bytes, padded),
      most_rows_(std::min(shape_.rows, query_slots(num_rows))),
      bounds_(bounds != nullptr ? bounds : lists.bounds),
      form_(*pass.filter, most_rows_),
      candidates_({most_rows_, shape_.capacity, most_rows_, false}, stream),
      slots_(most_rows_),
      own_slots_(most_rows_) {
  if (shape_.own_lists)
    candidates_.hold_entries();
  else
    candidates_.borrow_entries(lists);
  candidates_.meet(lists.column_places, lists.column_ids, lists.row_ids);
  pass_.filter = pass.filter;
  pass_.workers = pass.workers;
  pass_.rounds = pass.rounds;
  pass_.rounds.first_slab = 0;
  pass_.rounds.symmetric = false;
  pass_.rounds.fill_blocks = 0;
  // The weakest bound of a row comes from the cut that filled its list. With
  // errors as wide as those of bytes, this many more points give several times
  // k candidates.
  pass_.rounds.most_first =
      bounds != nullptr
          ? shape_.capacity / (2 * kFilterBlock)
          : shape_.capacity / 8 * pass.rounds.fill_blocks / pass.cut.k;
  pass_.rounds.growth = 2.0;
  pass_.rounds.risk = 0.0;
  pass_.work.columns = pass.work.columns;
  pass_.cut.redo = candidates_.redo();
  pass_.cut.k = pass.cut.k;
}

void WideFilter::begin(const std::int32_t* slots, const std::int32_t* places,
                       std::int64_t num_rows) {
  num_rows_ = num_rows;
  const std::int64_t num_slots = query_slots(num_rows);
  slot_places_.assign(places, places + num_rows);
  slot_places_.resize(static_cast<std::size_t>(num_slots), -1);
  upload(slots_, slots, num_rows, stream_);
  candidates_.place(slot_places_.data(), num_slots, stream_);
  candidates_.clear_redo(stream_);
  form_.clear(stream_);
  const CandidateLists& lists = candidates_.lists();
  constexpr std::int64_t threads = 256;
  start_from_bounds<<<static_cast<unsigned>((num_slots + threads - 1) /
                                            threads),
                      threads, 0, stream_.get()>>>(
      bounds_, slots_.data(), num_rows, lists, own_slots_.data());
  CUDA_CHECK(cudaGetLastError());
  pass_.work.rows = form_.first(num_slots);
  pass_.work.lists = pass_.cut.lists = lists;
  pass_.cut.end_slot = {num_slots};
  pass_.rounds.num_slabs = num_slots / kFilterSlab;
}

bool WideFilter::run(const PreparedRows& rows) {
  pass_.filter->start_rows(rows, num_rows_, own_slots_.data(), pass_.work.rows,
                           stream_.get());
  pass_.filter->set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                           stream_);
  return run_rounds(pass_, stream_);
}

}  // namespace cuda
}  // namespace fsknn
