#pragma once

// Kernels of triples for each instruction set, as kernels.hpp. Points are
// stored in panels of 16, [feature][16] floats.

#include <cstdint>

#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

struct TripleTile {
  static constexpr int panel = 16;
  static constexpr int rows = 4;
  static constexpr int size = rows * panel;
};

struct TripleKernels {
  /// Sums max(a, b) over `steps` features in sums[r * 16 + c], for 4 rows of a
  /// panel (a: the first of them) and 16 of another. `add`: adds to the
  /// existing sums.
  void (*accumulate)(const float* a, const float* b, std::int64_t steps,
                     bool add, float* sums);
  /// Sets bit c of keep[r] where sums <= share * (rows[r] + columns[c]).
  void (*test)(const float* sums, const float* rows, const float* columns,
               float share, std::uint32_t* keep);
  /// out = max(panel, row) for one row of a panel (row: its first number).
  void (*larger)(const float* row, const float* panel, std::int64_t steps,
                 float* out);
  /// sum_of_largest() of rows a, b, c.
  double (*exact)(const double* a, const double* b, const double* c,
                  std::int64_t padded);
  /// Kernels of thermometer codes (core/base/small_numbers.hpp), with 32 bits
  /// of codes in place of a float; null: floats are as fast.
  const TripleKernels* codes;
};

/// accumulate() and larger() for codes.
struct CodeKernels {
  void (*accumulate)(const float* a, const float* b, std::int64_t steps,
                     bool add, float* sums);
  void (*larger)(const float* row, const float* panel, std::int64_t steps,
                 float* out);
};

/// The triple kernels for the processor of `kernels`.
const TripleKernels& triple_kernels(const Kernels& kernels);

extern const TripleKernels kBaselineTripleKernels;
#ifdef FSKNN_X86_KERNELS
extern const TripleKernels kAvx2TripleKernels;
extern const CodeKernels kAvx512CodeKernels;
#endif
#ifdef FSKNN_NEON_KERNELS
extern const TripleKernels kNeonTripleKernels;
#endif

}  // namespace cpu
}  // namespace fsknn
