#pragma once

// Points with missing values, as pairs are computed from them (masked.hpp), and
// the answer by definition.

#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "core/order.hpp"
#include "core/progress.hpp"
#include "core/ranks.hpp"
#include "core/request.hpp"
#include "core/source.hpp"

namespace fsknn {

struct MaskedPoints {
  std::int64_t num_features = 0;
  std::int64_t padded = 0;  ///< features after padding, a multiple of 8
  std::int64_t words = 0;   ///< of 64 bits, for a row's mask
  PointOrder order;
  Buffer<double> rows;          ///< [size x padded], by place; NaN: no value
  Buffer<std::uint64_t> masks;  ///< [size x words]: bit f is set: has a value
  Buffer<std::int32_t> known;   ///< [size]: values that there are

  std::int64_t size() const { return order.num_active(); }
  const double* row(Place place) const {
    return rows.data() + place.value * padded;
  }
  const std::uint64_t* mask(Place place) const {
    return masks.data() + place.value * words;
  }
};

/// One row of d features, NaN where there is no value, in place: ranked over
/// its values (ranked_unit), times its power of two, padded with NaN. Returns
/// the number of values. `scratch` is the caller's.
struct MaskedScratch {
  AverageRanks ranks;
  std::vector<double> values;
};
std::int64_t prepare_masked_row(RowForm form, MaskedScratch& scratch, double* x,
                                std::int64_t d, std::int64_t padded);

/// Reads, prepares and places all points of `source` but `skip`.
MaskedPoints prepare_masked(const RowSource& source, RowForm form,
                            const std::vector<std::int64_t>& skip, bool shuffle,
                            int num_threads, Progress* progress = nullptr);

/// A row's neighbours, of which there may be fewer than k: what is not filled
/// is missing. distance, index: sorted, `size` of them; correlation may be
/// null.
void emit_masked(const Neighbours& out, AnswerRow row, std::int64_t k,
                 std::int64_t size, const double* distance,
                 const std::int32_t* index, const double* correlation);

/// brute_force() where request.na_pairwise. queries: null for the graph.
void brute_force_masked(const Request& request, const RowSource& points,
                        const RowSource* queries, const Neighbours& out);

}  // namespace fsknn
