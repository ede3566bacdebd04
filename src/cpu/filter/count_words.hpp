#pragma once

// Words of counts of alleles (0, 1, 2): bits of DUO's, else bytes.

#include <cstdint>

#include "core/base/filter_numbers.hpp"
#include "core/base/kinds.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

struct CountWords {
  explicit CountWords(const TableTerms& table)
      : bits(table.copies > 1.0 ? 8 : 1),
        product(bits == 8 ? Product::count_dot : Product::common_bits),
        numbers(bits == 8 ? FilterNumbers::int8 : FilterNumbers::bits) {}

  int each() const { return 32 / bits; }
  std::int64_t words(std::int64_t num_features) const {
    return (num_features + each() - 1) / each();
  }
  std::int64_t word_of(std::int64_t feature) const { return feature / each(); }
  /// The part of the feature's word.
  std::uint32_t part(double count, std::int64_t feature) const {
    return static_cast<std::uint32_t>(count)
           << static_cast<int>(feature % each()) * bits;
  }

  int bits;
  Product product;
  FilterNumbers numbers;
};

}  // namespace cpu
}  // namespace fsknn
