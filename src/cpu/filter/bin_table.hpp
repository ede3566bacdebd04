#pragma once

// Finds the slot of a histogram to which a pair belongs, from the filter's sum
// alone where that is certain. The proof is in the vignette "proofs", section
// "Histograms of pairs".

#include <cstdint>
#include <vector>

#include "cpu/filter/form.hpp"
#include "cpu/search/engine.hpp"

namespace fsknn {
namespace cpu {

/// The filter's sums in cells, and the slot that all pairs of a cell share.
class BinTable {
 public:
  static constexpr std::int32_t kUnsure = -1;

  /// serves() is false if the form has no such table, or if most cells are
  /// unsure: then the exact step computes every pair. rows: completed.
  BinTable(const PairBins& bins, const PairValue& value,
           const FilterTerms& terms, const FilterRows& rows);

  bool serves() const { return kind_ != Kind::none; }

  /// Writes the slots of the pairs of row `place`, with these sums, and `count`
  /// columns from `column` on. A slot is kUnsure where the sum does not
  /// determine it.
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

  // Similarities have cells of 2^18, whose width in r is 2.4e-4.
  static constexpr int kSumBits = 18;
  static constexpr std::int32_t kSumCells = 1 << (32 - kSumBits);
  // Squares have cells of 2^12 consecutive floats, 2,048 for each power of two.
  // They cover kPowers powers of two below the largest square; smaller squares
  // are in cell 0.
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
  std::int32_t first_ = 0;  ///< squares: the run of floats in cell 1
  /// For similarities and whole numbers: the slot of all pairs of each cell, or
  /// sum, or kUnsure. For squares: the least slot of pairs with their lower
  /// bound in the cell, and the last slot of those with their upper bound
  /// there.
  std::vector<std::int32_t> least_, last_;
};

}  // namespace cpu
}  // namespace fsknn
