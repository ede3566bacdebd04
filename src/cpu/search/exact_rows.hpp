#pragma once

// Prepared rows for the exact step: held, or prepared again when needed.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/poll.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// The rows of one chunk. Rows that are not held are prepared when first needed
/// and kept until the chunk changes. Early in a search most rows of a chunk are
/// needed many times, later only a few of them, once.
class ChunkRows {
 public:
  /// place_at: the places of the points in the order of the chunks; null if the
  /// points are in that order already. It must outlive this object.
  ChunkRows(const PreparedPoints& points,
            const std::vector<std::int32_t>* place_at, std::int64_t chunk_size)
      : points_(&points), place_at_(place_at), reader_(points) {
    if (points.held()) return;
    storage_ = Buffer<double>(chunk_size * points.padded);
    made_.assign(static_cast<std::size_t>(chunk_size), 0);
  }
  /// Changes to the chunk that starts at this place.
  void move_to(std::int64_t first) {
    if (first == first_) return;
    first_ = first;
    if (!points_->held()) made_.assign(made_.size(), 0);
  }
  /// The place of row `at` of the chunk among the points.
  Place place(std::int32_t at) const {
    const std::int64_t p = first_ + at;
    return {place_at_ == nullptr ? p
                                 : (*place_at_)[static_cast<std::size_t>(p)]};
  }
  /// Makes row `at` of the chunk available and returns its number among rows().
  std::int32_t need(std::int32_t at) {
    if (points_->held()) return static_cast<std::int32_t>(place(at).value);
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

/// Computes the contract's sums of one row with several others.
class RowSums {
 public:
  RowSums(const Kernels& kernels, Accumulation accumulation,
          const PreparedPoints& rows, const PreparedPoints& columns)
      : kernels_(&kernels),
        accumulation_(accumulation),
        columns_(&columns),
        row_(rows),
        column_(columns),
        made_(columns.held() ? 0 : kTogether * columns.padded) {}

  /// place_of(i), for i from 0 to count - 1, is the place of the i-th other
  /// row. The result is valid until the next call.
  template <class PlaceOf>
  const double* operator()(Place place, std::int64_t count, PlaceOf place_of) {
    sums_.resize(static_cast<std::size_t>(count));
    const double* row = row_(place);
    Pair pairs[kTogether];
    for (std::int64_t first = 0; first < count; first += kTogether) {
      const std::int64_t now = std::min(kTogether, count - first);
      for (std::int64_t c = 0; c < now; ++c) {
        const Place at = place_of(first + c);
        pairs[c] = {0,
                    static_cast<std::int32_t>(columns_->held() ? at.value : c)};
        if (!columns_->held())
          column_.make(at, made_.data() + c * columns_->padded);
      }
      kernels_->exact(accumulation_, row,
                      columns_->held() ? columns_->rows.data() : made_.data(),
                      columns_->padded, pairs, now, sums_.data() + first);
      poll_after(static_cast<double>(now) *
                 static_cast<double>(columns_->padded));
    }
    return sums_.data();
  }

 private:
  static constexpr std::int64_t kTogether = 16;
  const Kernels* kernels_;
  Accumulation accumulation_;
  const PreparedPoints* columns_;
  RowReader row_, column_;
  Buffer<double> made_;
  std::vector<double> sums_;
};

}  // namespace cpu
}  // namespace fsknn
