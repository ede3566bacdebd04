#pragma once

// The contract's arithmetic (vignette "proofs"). The functions of this file and
// of metrics.hpp compute every double that the package returns, in this order
// of operations, on every backend.
//
//  * A sum over features runs in 8 lanes: lane l takes features l, l + 8, ...
//    in that order. Then lanes l and l + 4 are added, then l and l + 2, then l
//    and l + 1. Rows are padded with zeros to a multiple of 8, which changes no
//    sum.
//  * A product that is added to a sum is an explicit fma. Every other step is
//    one correctly rounded operation, so the compiler has nothing to contract.
//
// The functions are templates over a Lanes type: 8 doubles with the operations
// below. ScalarLanes is the definition; the CPU kernels implement the same in
// vector registers. Everything here has internal linkage or depends on the
// Lanes type, because the file is compiled once for each instruction set.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"

namespace fsknn {

struct ScalarLanes {
  double v[kLanes];

  static ScalarLanes load(const double* p) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = p[l];
    return r;
  }
  void store(double* p) const {
    for (int l = 0; l < kLanes; ++l) p[l] = v[l];
  }
  static ScalarLanes all(double x) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = x;
    return r;
  }
  friend ScalarLanes fma(const ScalarLanes& a, const ScalarLanes& b,
                         const ScalarLanes& c) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = std::fma(a.v[l], b.v[l], c.v[l]);
    return r;
  }
  friend ScalarLanes add(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] + b.v[l];
    return r;
  }
  friend ScalarLanes sub(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] - b.v[l];
    return r;
  }
  friend ScalarLanes mul(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] * b.v[l];
    return r;
  }
  friend ScalarLanes div(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] / b.v[l];
    return r;
  }
  friend ScalarLanes smaller(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] < b.v[l] ? a.v[l] : b.v[l];
    return r;
  }
  friend ScalarLanes larger(const ScalarLanes& a, const ScalarLanes& b) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = a.v[l] > b.v[l] ? a.v[l] : b.v[l];
    return r;
  }
  friend ScalarLanes magnitude(const ScalarLanes& a) {
    ScalarLanes r;
    for (int l = 0; l < kLanes; ++l) r.v[l] = std::fabs(a.v[l]);
    return r;
  }
};

/// Adds the 8 lanes: l with l + 4, then l + 2, then l + 1.
FSKNN_HD static inline double join_sum(const double* v) {
  const double t0 = v[0] + v[4], t1 = v[1] + v[5];
  const double t2 = v[2] + v[6], t3 = v[3] + v[7];
  const double u0 = t0 + t2, u1 = t1 + t3;
  return u0 + u1;
}

FSKNN_HD static inline double join_largest(const double* v) {
  double m = v[0];
  for (int l = 1; l < kLanes; ++l) m = v[l] > m ? v[l] : m;
  return m;
}

/// The distance of two rows whose sum of squared differences left double's
/// range, or lost digits there. The differences are scaled so that the largest
/// is in [1, 2), and summed again. The distance is returned negated, which
/// marks it as a distance where callers expect its square. Equal rows give 0.
/// NaN entries are excluded from the sum (core/contract/masked.hpp).
FSKNN_HD static inline FSKNN_RARE double minus_distance(const double* a,
                                                        const double* b,
                                                        std::int64_t padded) {
  double largest = 0.0;
  for (std::int64_t f = 0; f < padded; ++f) {
    const double t = fabs(a[f] - b[f]);
    largest = t > largest ? t : largest;
  }
  if (!(largest > 0.0)) return 0.0;
  if (!(largest < HUGE_VAL)) return -HUGE_VAL;
  const int e = exponent_of(largest);
  const PowerOfTwo scale = power_of_two(-e);
  double v[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    v[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes) {
      const double t = ((a[f] - b[f]) * scale.first) * scale.second;
      if (t == t) v[l] = fma(t, t, v[l]);
    }
  }
  return -scaled(sqrt(join_sum(v)), power_of_two(e));
}

/// The sum of products of two rows if a partial sum left double's range. Both
/// rows are scaled so that their largest entry is in [2^480, 2^481), and the
/// sum is scaled back.
FSKNN_HD static inline FSKNN_RARE double wide_product(const double* a,
                                                      const double* b,
                                                      std::int64_t padded) {
  double p = 0.0, q = 0.0;
  for (std::int64_t f = 0; f < padded; ++f) {
    const double x = fabs(a[f]), y = fabs(b[f]);
    p = x > p ? x : p;
    q = y > q ? y : q;
  }
  const int e = exponent_of(p) - 480, g = exponent_of(q) - 480;
  const PowerOfTwo first = power_of_two(-e), second = power_of_two(-g);
  double v[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    v[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes)
      v[l] = fma((a[f] * first.first) * first.second,
                 (b[f] * second.first) * second.second, v[l]);
  }
  return scaled(join_sum(v), power_of_two(e + g));
}

/// sum min(a_f, b_f) of rows whose sum leaves double's range.
FSKNN_HD static inline FSKNN_RARE double minus_part_of_smaller(
    const double* a, const double* b, std::int64_t padded) {
  double v[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    v[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes)
      v[l] = fma(a[f] < b[f] ? a[f] : b[f], kPartOfSum, v[l]);
  }
  return -join_sum(v);
}

// Accumulations: the sums over the features of a pair of rows. Each has step()
// for 8 features at once and for one, and join() for the 8 lanes. checked()
// takes that sum and the rows, and recomputes a sum that left double's range.
// `which` is its value of kinds.hpp. with_accumulation() below lists them all.

/// Sums that stay within double's range, or whose distance leaves it too.
struct NeverAgain {
  FSKNN_HD static FSKNN_INLINE double checked(double sum, const double*,
                                              const double*, std::int64_t) {
    return sum;
  }
};

/// sum a_f b_f
struct Dot : NeverAgain {
  static constexpr Accumulation which = Accumulation::dot;
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    return fma(a, b, s);
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    return fma(a, b, s);
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_sum(v);
  }
};

/// sum a_f b_f of unscaled rows, whose products may leave double's range.
struct WideDot : Dot {
  static constexpr Accumulation which = Accumulation::wide_dot;
  FSKNN_HD static FSKNN_INLINE double checked(double sum, const double* a,
                                              const double* b,
                                              std::int64_t padded) {
    return fabs(sum) < HUGE_VAL ? sum : wide_product(a, b, padded);
  }
};

/// sum (a_f - b_f)^2. Below `least`, squares may have lost digits as subnormal
/// numbers, or vanished. The sum is then minus_distance(), as it is from `most`
/// on. Between the two, 2^31 squares lose less than 2^-140 of the sum.
struct SquaredDifference {
  static constexpr Accumulation which = Accumulation::squared_difference;
  static constexpr double least = 0x1p-900, most = 0x1p960;
  FSKNN_HD static FSKNN_INLINE double checked(double sum, const double* a,
                                              const double* b,
                                              std::int64_t padded) {
    return sum >= least && sum < most ? sum : minus_distance(a, b, padded);
  }
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    const L t = sub(a, b);
    return fma(t, t, s);
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    const double t = a - b;
    return fma(t, t, s);
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_sum(v);
  }
};

/// sum |a_f - b_f|
struct AbsoluteDifference : NeverAgain {
  static constexpr Accumulation which = Accumulation::absolute_difference;
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    return add(s, magnitude(sub(a, b)));
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    return s + fabs(a - b);
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_sum(v);
  }
};

/// max |a_f - b_f|
struct LargestDifference : NeverAgain {
  static constexpr Accumulation which = Accumulation::largest_difference;
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    return larger(s, magnitude(sub(a, b)));
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    const double t = fabs(a - b);
    return t > s ? t : s;
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_largest(v);
  }
};

/// sum min(a_f, b_f), negative if it left double's range (part_of_sum()).
struct SmallerSum {
  static constexpr Accumulation which = Accumulation::smaller_sum;
  FSKNN_HD static FSKNN_INLINE double checked(double sum, const double* a,
                                              const double* b,
                                              std::int64_t padded) {
    return sum < HUGE_VAL ? sum : minus_part_of_smaller(a, b, padded);
  }
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    return add(s, smaller(a, b));
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    return s + (a < b ? a : b);
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_sum(v);
  }
};

/// sum |a_f - b_f| / (|a_f| + |b_f|), where 0 / 0 is 0. Entries whose sum could
/// leave double's range are halved first. Others are not, because halves of
/// subnormal numbers are rounded. `minus` is -1/2 or -1, because the gap
/// between doubles near the limit is above 1.
struct RelativeDifference : NeverAgain {
  static constexpr Accumulation which = Accumulation::relative_difference;
  static constexpr double limit = 0x1p1022;
  template <class L>
  static FSKNN_INLINE L step(const L& a, const L& b, const L& s) {
    const L p = magnitude(a), q = magnitude(b);
    const L minus = smaller(
        larger(sub(larger(p, q), L::all(limit)), L::all(-1.0)), L::all(-0.5));
    const L by = magnitude(minus);
    const L t =
        div(magnitude(fma(a, by, mul(b, minus))), fma(p, by, mul(q, by)));
    return add(s, larger(t, L::all(0.0)));
  }
  FSKNN_HD static FSKNN_INLINE double step(double a, double b, double s) {
    const double p = fabs(a), q = fabs(b);
    const double by = (p > q ? p : q) < limit ? 1.0 : 0.5;
    const double t = fabs(fma(a, by, b * -by)) / fma(p, by, q * by);
    return s + (t > 0.0 ? t : 0.0);
  }
  FSKNN_HD static FSKNN_INLINE double join(const double* v) {
    return join_sum(v);
  }
};

/// Calls visit(Dot()) or its like: the only way from an accumulation chosen at
/// run time to the struct that sums it. Throws std::logic_error for others.
template <class Visit>
static FSKNN_INLINE auto with_accumulation(Accumulation accumulation,
                                           const Visit& visit) {
  switch (accumulation) {
    case Dot::which: return visit(Dot());
    case WideDot::which: return visit(WideDot());
    case SquaredDifference::which: return visit(SquaredDifference());
    case AbsoluteDifference::which: return visit(AbsoluteDifference());
    case LargestDifference::which: return visit(LargestDifference());
    case SmallerSum::which: return visit(SmallerSum());
    case RelativeDifference::which: return visit(RelativeDifference());
  }
  throw_unknown("accumulation", static_cast<int>(accumulation));
}

/// Accumulates over two prepared rows of `padded` features.
template <class L, class Accumulation>
double accumulate(const double* a, const double* b, std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = Accumulation::step(L::load(a + f), L::load(b + f), s);
  double v[kLanes];
  s.store(v);
  return Accumulation::checked(Accumulation::join(v), a, b, padded);
}

/// sum max(a_f, b_f, c_f) if it leaves double's range: see part_of_sum().
static inline FSKNN_RARE double minus_part_of_largest(const double* a,
                                                      const double* b,
                                                      const double* c,
                                                      std::int64_t padded) {
  double v[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    v[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes) {
      const double most = a[f] > b[f] ? a[f] : b[f];
      v[l] = fma(most > c[f] ? most : c[f], kPartOfSum, v[l]);
    }
  }
  return -join_sum(v);
}

/// sum max(a_f, b_f, c_f) over rows of nonnegative numbers: the same bits for
/// any order of the three. Negative as part_of_sum() expects it.
template <class L>
double sum_of_largest(const double* a, const double* b, const double* c,
                      std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = add(s, larger(larger(L::load(a + f), L::load(b + f)), L::load(c + f)));
  double v[kLanes];
  s.store(v);
  const double sum = join_sum(v);
  return sum < HUGE_VAL ? sum : minus_part_of_largest(a, b, c, padded);
}

}  // namespace fsknn
