#pragma once

// The kernels that exist once for each instruction set: kernels_*.cpp, each by
// kernels_body.hpp over its own vector types; kernels.cpp chooses. All of them
// give the same bits: the filter's sums are whole numbers, and the exact sums
// are the contract's lanes (core/contract/scaling.hpp).

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/kinds.hpp"

namespace fsknn {

struct MaskedTerms;

namespace cpu {

/// Shapes of the filter. Points stand in panels of 16. A panel is a sequence of
/// steps; a step holds 32 bits of each of the 16 points: two features in whole
/// numbers of 16 bits, four of 8, one in a float, or 32 in a bit each. A
/// micro-tile is 8 rows against up to 3 panels: 24 vector registers of sums.
struct Tile {
  static constexpr int panel = 16;
  static constexpr int rows = 8;
  static constexpr int panels = 3;
  static constexpr int columns = panel * panels;
};
static_assert(Tile::panel % Tile::rows == 0, "a micro-tile stays in a panel");

/// What the filter sums over features: in whole numbers without any rounding,
/// or in floats where the data's range is too wide for whole numbers.
enum class Product {
  dot,
  byte_dot,  ///< the first step of a row is byte_offset() of what follows
  byte_difference,  ///< of bytes without a sign, whose steps stand in twos
  smaller_sum,
  largest_difference,
  common_bits,
  float_smaller_sum,
  float_largest_difference
};

/// How a sum is held against the thresholds. Per point there is a threshold,
/// and one or two numbers (`first`, `second`) that the test reads; see
/// cpu/filter/ for what they are and why each test drops no neighbour.
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
  // The same, |sum| and -sum, where each row has its own unit: floats.
  scaled_similarity,  ///< a_i a_j sum + g_i + g_j >= min(t_i, t_j)
  scaled_absolute_similarity,
  scaled_negative_similarity,
  // And so of rows of two values each:
  two_values,  ///< a_i a_j sum - b_i b_j >= min(t_i, t_j)
  two_values_absolute,
  two_values_negative,
  // The same with sums in floats:
  float_sum_distance,        ///< w_i + w_j - 2 sum <= max(t_i, t_j)
  float_largest_difference,  ///< sum + w_i + w_j   <= max(t_i, t_j)
  float_overlap              ///< 2 sum >= (s_i + s_j) min(t_i, t_j)
};

/// Steps of a row before its features.
constexpr int first_steps(Product product) {
  return product == Product::byte_dot ? 1 : 0;
}

/// Where step f of the point at c stands in a panel, in 32 bits from its start.
/// In twos a point's steps are next to each other, eight bytes that one
/// instruction sums the differences of: of the first four points of each half
/// of a panel, then of the others, so that each half is where it is elsewhere.
constexpr std::int64_t step_at(Product product, std::int64_t f, int c) {
  return product == Product::byte_difference
             ? (f - f % 2 + c / 4 % 2) * Tile::panel + c / 8 * 8 + c % 4 * 2 +
                   f % 2
             : f * Tile::panel + c;
}

/// Numbers of 16 bits of a row that are taken together: a cache line.
constexpr std::int64_t kWordsTogether = 32;

/// What the products of a row of bytes with others are less, modulo 2^32, where
/// 128 is added to each byte of the others: instructions that multiply bytes
/// take them with a sign on one side and without on the other. total: of the
/// row's bytes.
inline std::int32_t byte_offset(std::int64_t total) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(-128 * total));
}

/// The numbers of some points in a row; 32 bits each, whole or float as the
/// test has it.
struct Side {
  const std::int32_t* threshold;
  const std::int32_t* first;
  const std::int32_t* second;
  Side at(std::int64_t p) const {
    return {threshold + p, first + p, second + p};
  }
};

/// What the filter of points with missing values knows of some points in a row
/// (masked_filter.hpp).
struct MaskedSide {
  const float* threshold;
  const float* error;
  const float* alpha;
  const float* w;
};

/// The same of squared differences.
struct MaskedDistanceSide {
  const float* threshold;
  const float* scale;
  const float* square;
  const float* minus_largest;
  const float* missing;
  const float* w;
};

/// A pair of places that the filter let pass.
struct Pair {
  std::int32_t row;
  std::int32_t column;
};

struct Kernels {
  const char* name;

  /// Prepares one row (core/contract/prepare.hpp).
  RowKernel prepare_row;

  /// The contract's sums of `count` pairs. rows_a, rows_b: [.. x padded].
  void (*exact)(Accumulation accumulation, const double* rows_a,
                const double* rows_b, std::int64_t padded, const Pair* pairs,
                std::int64_t count, double* sums);

  /// Sums of the differences of `count` pairs of rows of whole numbers of 16
  /// bits, which are 32,767 apart at most, and 2^31 - 1 in all. rows_a, rows_b:
  /// [.. x width], a multiple of kWordsTogether.
  void (*differences)(const std::int16_t* rows_a, const std::int16_t* rows_b,
                      std::int64_t width, const Pair* pairs, std::int64_t count,
                      std::int32_t* sums);

  /// sums[r * Tile::columns + c]: row r of 8 (a: their place in a panel)
  /// against column c of num_panels panels of `steps` steps each (an even
  /// number where they stand in twos). Float sums are stored as their bits.
  void (*accumulate)(Product product, const std::int32_t* a,
                     const std::int32_t* b, int num_panels, std::int64_t steps,
                     std::int32_t* sums);

  /// keep[r]: bit c is set where the pair (r, c) may be among the nearest of
  /// its row or its column.
  void (*test)(Test test, const std::int32_t* sums, int num_panels,
               const Side& rows, const Side& columns, std::uint64_t* keep);

  /// Lowers best[16 * num_groups] (of one row) by keys of the row's sums:
  /// smaller is nearer. Panel p of the call goes to group (group + p) %
  /// num_groups. `columns.second` and `first` are those for the upper bound.
  void (*lower_best)(Test test, const std::int32_t* sums, int num_panels,
                     const Side& row, const Side& columns, int group,
                     int num_groups, float* best);

  /// masked_pair() of `count` pairs of rows with missing values.
  void (*masked)(const MaskedTerms& terms, const double* rows_a,
                 const double* rows_b, std::int64_t padded, const Pair* pairs,
                 std::int64_t count, double* found);

  /// Step 1 of the filter of points with missing values, of one row: bit c is
  /// set where column c of the panels stays. sums: of whole numbers, to be
  /// multiplied by `unit`.
  std::uint64_t (*masked_test)(Sign sign, const std::int32_t* sums,
                               int num_panels, float unit,
                               const MaskedSide& row,
                               const MaskedSide& columns);

  /// The same of squared differences.
  std::uint64_t (*masked_distance_test)(const std::int32_t* sums,
                                        int num_panels,
                                        const MaskedDistanceSide& row,
                                        const MaskedDistanceSide& columns);

  /// Of the 16 points of a panel [feature][16], the sums of the values and of
  /// their squares over the features of a list, in any order.
  void (*masked_sums)(const float* panel, const std::int32_t* list,
                      std::int64_t length, float* sum, float* square);
};

/// Those that this processor can run, slowest first; never empty.
const std::vector<const Kernels*>& available_kernels();

/// "auto" (fastest) or one by name, up to a "/"; else std::invalid_argument.
const Kernels& choose_kernels(const std::string& name);

extern const Kernels kBaselineKernels;
// clang knows no "pragma GCC target": it has the baseline alone.
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
// GCC from 10 and clang from 16 on let a file's functions have what the rest of
// the program may not; others, what they compile everything for.
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
