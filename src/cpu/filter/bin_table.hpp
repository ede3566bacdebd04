#pragma once

// Which slot of a histogram a pair is sure to be in, by the filter's sum alone.
// The proof is in the vignette "proofs", section "Histograms of pairs".

#include <cstdint>
#include <vector>

#include "cpu/filter/form.hpp"
#include "cpu/search/engine.hpp"

namespace fsknn {
namespace cpu {

/// Sums in cells, and of each cell what all pairs in it have in common.
class BinTable {
 public:
  static constexpr std::int32_t kUnsure = -1;

  /// Of a form that has no such table, or where most cells are unsure, it does
  /// not serve: every pair is for the exact step. rows: completed.
  BinTable(const PairBins& bins, const PairValue& value,
           const FilterTerms& terms, const FilterRows& rows);

  bool serves() const { return kind_ != Kind::none; }

  /// The slots of the pairs of row `place`, whose sums these are, with `count`
  /// columns from `column` on. slots: kUnsure where the sum does not tell.
  void slots_of(const std::int32_t* sums, const FilterRows& rows,
                std::int64_t place, std::int64_t column, std::int64_t count,
                std::int32_t* slots) const {
    if (kind_ == Kind::similarity)
      of_similarities(sums, count, slots);
    else if (kind_ == Kind::whole)
      of_whole_numbers(sums, rows, place, column, count, slots);
    else
      of_squares(sums, rows, place, column, count, slots);
  }

 private:
  enum class Kind { none, similarity, square, whole };

  // Similarities: cells of 2^18, a cell's width in r being 2.4e-4.
  static constexpr int kSumBits = 18;
  static constexpr std::int32_t kSumCells = 1 << (32 - kSumBits);
  // Squares: cells are runs of 2^12 floats, 2,048 to each power of two, over so
  // many powers of two below the largest; what is less is in cell 0.
  static constexpr int kFloatBits = 12;
  static constexpr std::int32_t kPowers = 24;
  static constexpr std::int32_t kFloatCells = kPowers << (23 - kFloatBits);

  void fill_similarities(const PairBins& bins, const PairValue& value,
                         double slack);
  void fill_squares(const PairBins& bins, const FilterTerms& terms,
                    const FilterRows& rows);

  void fill_whole_numbers(const PairBins& bins, const PairValue& value,
                          const FilterTerms& terms, const FilterRows& rows);

  void of_similarities(const std::int32_t* sums, std::int64_t count,
                       std::int32_t* slots) const {
    for (std::int64_t c = 0; c < count; ++c)
      slots[c] = least_[static_cast<std::size_t>((sums[c] >> kSumBits) +
                                                 kSumCells / 2)];
  }
  void of_whole_numbers(const std::int32_t* sums, const FilterRows& rows,
                        std::int64_t place, std::int64_t column,
                        std::int64_t count, std::int32_t* slots) const;
  void of_squares(const std::int32_t* sums, const FilterRows& rows,
                  std::int64_t place, std::int64_t column, std::int64_t count,
                  std::int32_t* slots) const;
  std::int32_t cell_of(float square) const;

  Kind kind_ = Kind::none;
  std::int32_t first_ = 0;  ///< squares: the run of floats that is cell 1
  /// Of each cell, or of each sum of rows of bits, the slot of all its pairs,
  /// or kUnsure (similarities, whole numbers); or the least slot of pairs whose
  /// lower bound is in it, and the last of those whose upper bound is
  /// (squares).
  std::vector<std::int32_t> least_, last_;
};

}  // namespace cpu
}  // namespace fsknn
