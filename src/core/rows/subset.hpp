#pragma once

// Some rows, or some features, of another source, in any order, with
// repetition.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

class RowSubset final : public RowSource {
 public:
  /// numbers: rows of `whole`, from 0. `whole` must outlive this.
  RowSubset(const RowSource& whole, std::vector<std::int32_t> numbers)
      : whole_(whole), numbers_(std::move(numbers)) {}

  const std::vector<std::int32_t>& numbers() const { return numbers_; }
  std::int64_t num_points() const override {
    return static_cast<std::int64_t>(numbers_.size());
  }
  std::int64_t num_features() const override { return whole_.num_features(); }
  /// Reads consecutive rows of `whole` together.
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    const std::int32_t* const at = numbers_.data() + first;
    for (std::int64_t r = 0; r < count;) {
      std::int64_t end = r + 1;
      while (end < count && at[end] == at[end - 1] + 1) ++end;
      whole_.read(at[r], end - r, out + r * stride, stride);
      r = end;
    }
  }
  bool made_when_read() const override { return whole_.made_when_read(); }
  MadeFrom made_from() const override {
    MadeFrom from = whole_.made_from();
    // MadeFrom has only one level of numbers.
    if (from.numbers != nullptr) return {};
    if (from.source != nullptr) from.numbers = numbers_.data();
    return from;
  }
  bool on_disk() const override { return whole_.on_disk(); }
  bool prepared() const override { return whole_.prepared(); }

 private:
  const RowSource& whole_;
  std::vector<std::int32_t> numbers_;
};

class FeatureSubset final : public RowSource {
 public:
  /// numbers: features of `whole`, from 0. `whole` must outlive this. Its rows
  /// must not be prepared, since preparation uses all their features.
  FeatureSubset(const RowSource& whole, std::vector<std::int32_t> numbers)
      : whole_(whole), numbers_(std::move(numbers)) {
    if (whole.prepared())
      throw std::invalid_argument("prepared rows are of all their features");
    for (const std::int32_t f : numbers_)
      if (f < 0 || f >= whole.num_features())
        throw std::invalid_argument("there is no such feature");
  }
  FeatureSubset(std::unique_ptr<RowSource> whole,
                std::vector<std::int32_t> numbers)
      : FeatureSubset(*whole, std::move(numbers)) {
    owned_ = std::move(whole);
  }

  const RowSource& whole() const { return whole_; }
  const std::vector<std::int32_t>& numbers() const { return numbers_; }
  std::int64_t num_points() const override { return whole_.num_points(); }
  std::int64_t num_features() const override {
    return static_cast<std::int64_t>(numbers_.size());
  }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    const std::int64_t all = whole_.num_features();
    const std::int64_t at_once = std::min(count, rows_per_block(all));
    Buffer<double> rows(at_once * all);
    for (std::int64_t r = 0; r < count; r += at_once) {
      const std::int64_t end = std::min(count, r + at_once);
      whole_.read(first + r, end - r, rows.data(), all);
      for (std::int64_t i = r; i < end; ++i) {
        const double* const from = rows.data() + (i - r) * all;
        double* const to = out + i * stride;
        for (std::size_t f = 0; f < numbers_.size(); ++f)
          to[f] = from[numbers_[f]];
      }
    }
  }
  bool made_when_read() const override { return whole_.made_when_read(); }
  bool on_disk() const override { return whole_.on_disk(); }

 private:
  std::unique_ptr<RowSource> owned_;
  const RowSource& whole_;
  std::vector<std::int32_t> numbers_;
};

/// The positions of those `numbers` that are in `skip` (ascending).
inline std::vector<std::int64_t> positions_in(
    const std::vector<std::int32_t>& numbers,
    const std::vector<std::int64_t>& skip) {
  std::vector<std::int64_t> at;
  if (skip.empty()) return at;
  for (std::size_t p = 0; p < numbers.size(); ++p)
    if (std::binary_search(skip.begin(), skip.end(),
                           static_cast<std::int64_t>(numbers[p])))
      at.push_back(static_cast<std::int64_t>(p));
  return at;
}

}  // namespace fsknn
