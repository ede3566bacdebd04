#pragma once

// The kernels that exist once for each instruction set. Each kernels_*.cpp
// compiles kernels_body.hpp with its own vector types; kernels.cpp chooses one.
// All return the same bits: the filter's sums are whole numbers, and the exact
// sums use the contract's lanes (core/contract/scaling.hpp).

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/kinds.hpp"

namespace fsknn {

struct MaskedTerms;

namespace cpu {

/// Shapes of the filter. Points are stored in panels of 16. A panel is a
/// sequence of steps, and a step holds 32 bits of each of the 16 points. These
/// are two features in whole numbers of 16 bits, four in 8 bits, one in a
/// float, or 32 in single bits. A micro-tile compares 8 rows with up to 3
/// panels, with its sums in 24 vector registers.
struct Tile {
  static constexpr int panel = 16;
  static constexpr int rows = 8;
  static constexpr int panels = 3;
  static constexpr int columns = panel * panels;
};
static_assert(Tile::panel % Tile::rows == 0, "a micro-tile stays in a panel");

/// The filter's sum over features. It is in whole numbers without rounding, or
/// in floats where the data's range is too wide for whole numbers.
enum class Product {
  dot,
  byte_dot,         ///< a row's first step is byte_offset() of the rest
  count_dot,        ///< of bytes from 0 to kMostCount
  byte_difference,  ///< of unsigned bytes, with steps stored in pairs
  smaller_sum,
  largest_difference,
  common_bits,
  float_smaller_sum,
  float_largest_difference
};

/// The comparison of a sum with the thresholds. Each point has a threshold and
/// one or two numbers (`first`, `second`) that the test reads. cpu/filter/
/// defines them and shows why no test drops a neighbour.
enum class Test {
  similarity,           ///< sum            >= min(t_i, t_j)
  absolute_similarity,  ///< |sum|          >= min(t_i, t_j)
  negative_similarity,  ///< -sum           >= min(t_i, t_j)
  squared_distance,     ///< w_i + w_j - 2 a_i a_j sum <= max(t_i, t_j), floats
  sum_distance,         ///< p_i + p_j - 2 sum         <= max(t_i, t_j)
  largest_difference,   ///< sum                       <= max(t_i, t_j)
  overlap,              ///< 2 sum + g_i + g_j >= (s_i + s_j) min(t_i, t_j)
  product,              ///< a_i a_j (sum + g)         >= min(t_i, t_j), floats
  byte_difference,  ///< sum - g_i - g_j <= (w_i + w_j) max(t_i, t_j), floats
  // Similarity tests where each row has its own unit, in floats:
  scaled_similarity,  ///< a_i a_j sum + g_i + g_j >= min(t_i, t_j)
  scaled_absolute_similarity,
  scaled_negative_similarity,
  // Similarity tests for rows of two values each:
  two_values,  ///< a_i a_j sum - b_i b_j >= min(t_i, t_j)
  two_values_absolute,
  two_values_negative,
  // Tests of float sums:
  float_sum_distance,        ///< w_i + w_j - 2 sum <= max(t_i, t_j)
  float_largest_difference,  ///< sum + w_i + w_j   <= max(t_i, t_j)
  float_overlap,             ///< 2 sum >= (s_i + s_j) min(t_i, t_j)
  /// The largest entry of a table of alleles (tables.cpp) >= min(t_i, t_j), in
  /// floats, with three numbers a point.
  table
};

/// The largest number of Product::count_dot.
constexpr int kMostCount = 4;

/// The number of steps of a row before its features.
constexpr int first_steps(Product product) {
  return product == Product::byte_dot ? 1 : 0;
}

/// The position of step f of point c in a panel, in units of 32 bits. In pairs,
/// two steps of a point are adjacent: one instruction sums the differences of
/// these eight bytes. In each half of a panel the pairs of the first four
/// points come first. So each half starts where it does in other products.
constexpr std::int64_t step_at(Product product, std::int64_t f, int c) {
  return product == Product::byte_difference
             ? (f - f % 2 + c / 4 % 2) * Tile::panel + c / 8 * 8 + c % 4 * 2 +
                   f % 2
             : f * Tile::panel + c;
}

/// The number of 16-bit numbers of a row that are processed together: a cache
/// line.
constexpr std::int64_t kWordsTogether = 32;

/// The correction, modulo 2^32, of the products of a row of bytes with others
/// to which 128 is added. Instructions that multiply bytes take one operand
/// signed and the other unsigned. total: the sum of the row's bytes.
inline std::int32_t byte_offset(std::int64_t total) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(-128 * total));
}

/// The numbers of consecutive points: 32 bits each, whole or float as the test
/// needs.
struct Side {
  const std::int32_t* threshold;
  const std::int32_t* first;
  const std::int32_t* second;
  const std::int32_t* third = nullptr;  ///< Test::table only
  Side at(std::int64_t p) const {
    return {threshold + p, first + p, second + p,
            third == nullptr ? nullptr : third + p};
  }
};

/// The numbers of consecutive points with missing values that the filter reads
/// (masked_filter.hpp).
struct MaskedSide {
  const float* threshold;
  const float* error;
  const float* alpha;
  const float* w;
};

/// The same for squared differences.
struct MaskedDistanceSide {
  const float* threshold;
  const float* scale;
  const float* square;
  const float* minus_largest;
  const float* missing;
  const float* w;
};

/// Consecutive third points of tables of three loci (TripleTableRow).
struct TripleTableColumns {
  const float* with_apex;  ///< C times the sums of products
  const float* without;    ///< C^2 times the counted alleles, less with_apex
  const float* with_row;   ///< as with_apex
  const float* weight;     ///< of the counted allele
};

/// The places of a pair that passed the filter.
struct Pair {
  std::int32_t row;
  std::int32_t column;
};

struct Kernels {
  const char* name;

  /// Prepares one row (core/contract/prepare.hpp).
  RowKernel prepare_row;

  /// Computes the contract's sums of `count` pairs. rows_a, rows_b: [.. x
  /// padded].
  void (*exact)(Accumulation accumulation, const double* rows_a,
                const double* rows_b, std::int64_t padded, const Pair* pairs,
                std::int64_t count, double* sums);

  /// Sums the differences of `count` pairs of rows of 16-bit whole numbers. A
  /// difference is at most 32,767 and a sum at most 2^31 - 1. rows_a, rows_b:
  /// [.. x width], where width is a multiple of kWordsTogether.
  void (*differences)(const std::int16_t* rows_a, const std::int16_t* rows_b,
                      std::int64_t width, const Pair* pairs, std::int64_t count,
                      std::int32_t* sums);

  /// Writes sums[r * Tile::columns + c] for row r of 8 (a: their place in a
  /// panel) and column c of num_panels panels. Each panel has `steps` steps (an
  /// even number if they are in pairs). Float sums are stored as their bits.
  void (*accumulate)(Product product, const std::int32_t* a,
                     const std::int32_t* b, int num_panels, std::int64_t steps,
                     std::int32_t* sums);

  /// Sets bit c of keep[r] where the pair (r, c) may be among the nearest of
  /// its row or its column.
  void (*test)(Test test, const std::int32_t* sums, int num_panels,
               const Side& rows, const Side& columns, std::uint64_t* keep);

  /// Lowers best[16 * num_groups] (of one row) by keys of the row's sums, where
  /// smaller is nearer. Panel p of the call belongs to group (group + p) %
  /// num_groups. `columns.first` and `columns.second` are those of the upper
  /// bound.
  void (*lower_best)(Test test, const std::int32_t* sums, int num_panels,
                     const Side& row, const Side& columns, int group,
                     int num_groups, float* best);

  /// Compares the box of some points with 16 others. Bit b is set unless the
  /// sum of the squared gaps between the boxes (or of the gaps, or their
  /// largest) exceeds limit[b] and other_limit. boxes: [width][2][16], the
  /// least and the largest entries; other: [width][2].
  std::uint32_t (*near_boxes)(Accumulation gaps, const float* boxes,
                              const float* limit, const float* other,
                              float other_limit, std::int64_t width);

  /// Computes masked_pair() for `count` pairs of rows with missing values.
  void (*masked)(const MaskedTerms& terms, const double* rows_a,
                 const double* rows_b, std::int64_t padded, const Pair* pairs,
                 std::int64_t count, double* found);

  /// Step 1 of the filter of points with missing values, for one row: bit c is
  /// set where column c of the panels passes. sums: whole numbers, to be
  /// multiplied by `unit`.
  std::uint64_t (*masked_test)(Sign sign, const std::int32_t* sums,
                               int num_panels, float unit,
                               const MaskedSide& row,
                               const MaskedSide& columns);

  /// The same for squared differences.
  std::uint64_t (*masked_distance_test)(const std::int32_t* sums,
                                        int num_panels,
                                        const MaskedDistanceSide& row,
                                        const MaskedDistanceSide& columns);

  /// Sums, for each of the 16 points of a panel [feature][16], the values and
  /// their squares over the features of a list. The order is free.
  void (*masked_sums)(const float* panel, const std::int32_t* list,
                      std::int64_t length, float* sum, float* square);

  /// Writes the largest entries of the tables of a row and each column. sums:
  /// of products of three. A bit is set where the entry is at least `least`.
  std::uint64_t (*triple_tables)(const TripleTableRow& row,
                                 const TripleTableColumns& columns,
                                 const std::int32_t* sums, int num_panels,
                                 float least, float* largest);
};

/// The kernels that this processor can run, slowest first; never empty.
const std::vector<const Kernels*>& available_kernels();

/// Returns the fastest kernels ("auto"), or those of a name up to a "/". Throws
/// std::invalid_argument for an unknown name.
const Kernels& choose_kernels(const std::string& name);

extern const Kernels kBaselineKernels;
// clang does not support "pragma GCC target", so that it has the baseline only.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FSKNN_X86_KERNELS 1
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
extern const Kernels kAvx512PopcntKernels;
#endif
#if defined(__aarch64__) && defined(__GNUC__)
#define FSKNN_NEON_KERNELS 1
extern const Kernels kNeonKernels;
// GCC from version 10 and clang from 16 can enable extensions for one file's
// functions. Other compilers have those for which everything is compiled.
#if (defined(__clang__) && __clang_major__ >= 16) || \
    (!defined(__clang__) && __GNUC__ >= 10)
#define FSKNN_NEON_TARGETS 1
#endif
#if defined(FSKNN_NEON_TARGETS) || defined(__ARM_FEATURE_DOTPROD)
#define FSKNN_NEONDOT_KERNELS 1
extern const Kernels kNeonDotKernels;
#if defined(FSKNN_NEON_TARGETS) || defined(__ARM_FEATURE_MATMUL_INT8)
#define FSKNN_NEONI8MM_KERNELS 1
extern const Kernels kNeonI8mmKernels;
#endif
#endif
#endif

}  // namespace cpu
}  // namespace fsknn
