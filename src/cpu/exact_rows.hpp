#pragma once

// Prepared rows for the exact step, whether they are held or made again.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/prepared.hpp"
#include "cpu/kernels.hpp"

namespace fsknn {
namespace cpu {

/// The rows of one chunk. Those that are not held are made when first needed,
/// and stay until the chunk is left: near its start a search needs most rows of
/// a chunk many times, later few of them once.
class ChunkRows {
 public:
  /// place_at: the places of the points in the order of the chunks; null: as
  /// they stand. It must stay.
  ChunkRows(const PreparedPoints& points,
            const std::vector<std::int32_t>* place_at, std::int64_t chunk_size)
      : points_(&points), place_at_(place_at), reader_(points) {
    if (points.held()) return;
    storage_ = Buffer<double>(chunk_size * points.padded);
    made_.assign(static_cast<std::size_t>(chunk_size), 0);
  }
  /// To the chunk that starts at this place.
  void move_to(std::int64_t first) {
    if (first == first_) return;
    first_ = first;
    if (!points_->held()) made_.assign(made_.size(), 0);
  }
  /// The place of row `at` of the chunk among the points.
  std::int32_t place(std::int32_t at) const {
    const std::int64_t p = first_ + at;
    return place_at_ == nullptr ? static_cast<std::int32_t>(p)
                                : (*place_at_)[static_cast<std::size_t>(p)];
  }
  /// Row `at` of the chunk is wanted: its number among rows().
  std::int32_t need(std::int32_t at) {
    if (points_->held()) return place(at);
    if (!made_[static_cast<std::size_t>(at)]) {
      made_[static_cast<std::size_t>(at)] = 1;
      reader_.make(place(at), storage_.data() + at * points_->padded);
    }
    return at;
  }
  /// [.. x padded]
  const double* rows() const {
    return points_->held() ? points_->rows.data() : storage_.data();
  }

 private:
  const PreparedPoints* points_;
  const std::vector<std::int32_t>* place_at_;
  RowReader reader_;
  Buffer<double> storage_;
  std::vector<char> made_;
  std::int64_t first_ = -1;
};

/// The signed correlations of a row and its neighbours.
class Correlations {
 public:
  Correlations(const Kernels& kernels, const PreparedPoints& rows,
               const PreparedPoints& columns)
      : kernels_(&kernels),
        columns_(&columns),
        row_(rows),
        column_(columns),
        made_(columns.held() ? 0 : kTogether * columns.padded) {}

  /// index[k]: neighbours, by the user's number. The result stays until the
  /// next call.
  const double* operator()(std::int64_t place, const std::int32_t* index,
                           std::int64_t k) {
    r_.resize(static_cast<std::size_t>(k));
    const double* row = row_(place);
    Pair pairs[kTogether];
    for (std::int64_t rank = 0; rank < k; rank += kTogether) {
      const std::int64_t count = std::min(kTogether, k - rank);
      for (std::int64_t c = 0; c < count; ++c) {
        const std::int32_t at =
            columns_->order.place[static_cast<std::size_t>(index[rank + c])];
        pairs[c] = {0, columns_->held() ? at : static_cast<std::int32_t>(c)};
        if (!columns_->held())
          column_.make(at, made_.data() + c * columns_->padded);
      }
      kernels_->exact(Accumulation::dot, row,
                      columns_->held() ? columns_->rows.data() : made_.data(),
                      columns_->padded, pairs, count, r_.data() + rank);
    }
    for (double& r : r_) r = clamp_to_one(r);
    return r_.data();
  }

 private:
  static constexpr std::int64_t kTogether = 16;
  const Kernels* kernels_;
  const PreparedPoints* columns_;
  RowReader row_, column_;
  Buffer<double> made_;
  std::vector<double> r_;
};

}  // namespace cpu
}  // namespace fsknn
