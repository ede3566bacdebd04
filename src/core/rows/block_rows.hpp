#pragma once

// One or two ranges of the points of a source, as a source in memory. A search
// of two blocks reads nothing else.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/base/numbers.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// Points first .. first + count - 1.
struct Block {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

class BlockRows final : public RowSource {
 public:
  /// The points of `a`, then those of `b`, which comes after `a` or is empty.
  /// `whole` must outlive this.
  explicit BlockRows(const RowSource& whole, Block a, Block b = {})
      : whole_(whole), a_(a), b_(b) {
    const bool fits =
        a.first >= 0 && a.count >= 0 && b.count >= 0 &&
        a.end() <= whole.num_points() &&
        (b.count == 0 || (b.first >= a.end() && b.end() <= whole.num_points()));
    if (!fits) throw std::invalid_argument("there are no such blocks");
    numbers_.resize(static_cast<std::size_t>(a.count + b.count));
    const auto second = numbers_.begin() + a.count;
    std::iota(numbers_.begin(), second, static_cast<std::int32_t>(a.first));
    std::iota(second, numbers_.end(), static_cast<std::int32_t>(b.first));
  }

  /// The id of row `at` in the whole source.
  PointId id_of(std::int64_t at) const {
    return {numbers_[static_cast<std::size_t>(at)]};
  }
  /// The row of a point that is in one of the blocks.
  std::int64_t row_of(PointId id) const {
    return id.value < a_.end() ? id.value - a_.first
                               : a_.count + id.value - b_.first;
  }
  /// The rows here of those `points` of the whole source (ascending) that are
  /// in the blocks.
  std::vector<std::int64_t> rows_of(
      const std::vector<std::int64_t>& points) const {
    std::vector<std::int64_t> rows;
    for (const Block& block : {a_, b_}) {
      const auto end =
          std::lower_bound(points.begin(), points.end(), block.end());
      for (auto p = std::lower_bound(points.begin(), end, block.first);
           p != end; ++p)
        rows.push_back(row_of(PointId{static_cast<std::int32_t>(*p)}));
    }
    return rows;
  }

  std::int64_t num_points() const override { return a_.count + b_.count; }
  std::int64_t num_features() const override { return whole_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    const std::int64_t in_a =
        std::max<std::int64_t>(0, std::min(count, a_.count - first));
    if (in_a > 0) whole_.read(a_.first + first, in_a, out, stride);
    if (in_a < count)
      whole_.read(b_.first + first + in_a - a_.count, count - in_a,
                  out + in_a * stride, stride);
  }
  bool made_when_read() const override { return whole_.made_when_read(); }
  MadeFrom made_from() const override {
    MadeFrom from = whole_.made_from();
    // MadeFrom has only one level of numbers.
    if (from.numbers != nullptr) return {};
    if (from.source != nullptr) from.numbers = numbers_.data();
    return from;
  }
  bool prepared() const override { return whole_.prepared(); }

 private:
  const RowSource& whole_;
  const Block a_, b_;
  std::vector<std::int32_t> numbers_;
};

}  // namespace fsknn
