#pragma once

// Computes prepare_row() of core/contract/prepare.hpp for one row on the device
// by 8 threads, one a lane. All threads of a warp must call these functions
// together, each group of 8 for its own row. A group without a row runs over no
// features (end and d of 0).

#include <cstdint>

#include "core/contract/prepare.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {

// Each thread handles sums of one row, so reading this many ahead must hide the
// latency of memory.
constexpr int kValuesAtOnce = 16;

/// Returns the row's largest |x| to each of the 8 threads, one a lane.
__device__ inline double joined_largest(double part) {
  double v[kLanes];
#pragma unroll
  for (int l = 0; l < kLanes; ++l)
    v[l] = __shfl_sync(0xffffffffu, part, l, kLanes);
  return join_largest(v);
}

/// Computes largest_magnitude() of core/contract/prepare.hpp.
__device__ inline double largest_of(const double* x, std::int64_t end,
                                    int lane) {
  double m = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double a = fabs(x[f]);
    m = a > m ? a : m;
  }
  return joined_largest(m);
}

/// Computes take_away() of core/contract/prepare.hpp.
__device__ inline void take_away(double* x, std::int64_t d, std::int64_t end,
                                 int lane,
                                 const FeatureCovariates& covariates) {
  constexpr int n = kVectorsAtOnce;
  const std::int64_t padded = padded_features(d);
  for (int time = 0; time < 2; ++time)
    for (std::int64_t j = 0; j < covariates.vectors; j += n) {
      const double* const basis = covariates.basis + j * padded;
      double s[n] = {};
      for (std::int64_t f = lane; f < end; f += kLanes) {
        const double c = x[f];
#pragma unroll
        for (int q = 0; q < n; ++q) s[q] = fma(basis[q * padded + f], c, s[q]);
      }
#pragma unroll
      for (int q = 0; q < n; ++q) s[q] = -joined<Dot>(s[q]);
      for (std::int64_t f = lane; f < end; f += kLanes) {
        double c = x[f];
#pragma unroll
        for (int q = 0; q < n; ++q) c = fma(basis[q * padded + f], s[q], c);
        x[f] = c;
      }
    }
}

/// Computes prepare_centred_unit(), prepare_weighted_unit(), or
/// prepare_adjusted_unit() of a row that has a residual after covariates. Each
/// pass recomputes the centred values rather than storing them: the same
/// operations give the same bits.
template <bool weighted, bool adjusted>
__device__ inline void centred_unit(double* x, std::int64_t d, std::int64_t end,
                                    int lane, const FeatureWeights& weights,
                                    const FeatureCovariates& covariates) {
  const PowerOfTwo scale = power_of_two(-exponent_of(largest_of(x, end, lane)));
  const double total = weighted ? weights.total : static_cast<double>(d);
  double s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double half = x[f] * scale.first;
    s = weighted ? fma(weights.weight[f], half * scale.second, s)
                 : fma(half, scale.second, s);
  }
  const double minus_first = -(joined<Dot>(s) / total);
  const auto once = [&](std::int64_t f) {
    return f < d ? fma(x[f] * scale.first, scale.second, minus_first) : 0.0;
  };
  s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes)
    s = fma(weighted ? weights.weight[f] : 1.0, once(f), s);
  const double minus_second = -(joined<Dot>(s) / total);
  const auto twice = [&](std::int64_t f) {
    const double c = f < d ? fma(once(f), 1.0, minus_second) : 0.0;
    return weighted ? c * weights.root[f] : c;
  };
  if (adjusted) {
    for (std::int64_t f = lane; f < end; f += kLanes) x[f] = twice(f);
    take_away(x, d, end, lane, covariates);
  }
  const auto entry = [&](std::int64_t f) { return adjusted ? x[f] : twice(f); };
  s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double c = entry(f);
    s = fma(c, c, s);
  }
  const double length = sqrt(joined<Dot>(s));
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) x[f] = entry(f) / length;
}

/// Computes sum_of_squares() of core/contract/prepare.hpp.
__device__ inline double squares_of(const double* x, std::int64_t end,
                                    int lane) {
  double s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) s = fma(x[f], x[f], s);
  return joined<Dot>(s);
}

/// Computes prepare_ranks().
__device__ inline double whole_ranks(double* x, std::int64_t d,
                                     std::int64_t end, int lane) {
  const double minus = -static_cast<double>(d + 1);
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes)
    x[f] = f < d ? fma(2.0, x[f], minus) : 0.0;
  return squares_of(x, end, lane);
}

/// Computes prepare_unit().
__device__ inline void unit(double* x, std::int64_t end, int lane) {
  const PowerOfTwo scale = power_of_two(-exponent_of(largest_of(x, end, lane)));
  double s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double c = (x[f] * scale.first) * scale.second;
    s = fma(c, c, s);
  }
  const double length = sqrt(joined<Dot>(s));
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes)
    x[f] = ((x[f] * scale.first) * scale.second) / length;
}

/// Computes prepare_raw().
__device__ inline double raw(double* x, std::int64_t end, int lane,
                             PowerOfTwo scale) {
  double s = 0.0;
#pragma unroll kValuesAtOnce
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double half = x[f] * scale.first;
    s = fma(half, scale.second, s);
    x[f] = half * scale.second;
  }
  const double sum = joined<Dot>(s);
  // For wide data, as minus_part_of_smaller(); the reduction needs the whole
  // warp.
  if (__any_sync(0xffffffffu, !(sum < HUGE_VAL))) {
    double part = 0.0;
    for (std::int64_t f = lane; f < end; f += kLanes)
      part = fma(x[f], kPartOfSum, part);
    const double parts = joined<Dot>(part);
    return sum < HUGE_VAL ? sum : -parts;
  }
  return sum;
}

/// Maps doubles to whole numbers in the same order, with -0.0 equal to 0.0; and
/// back.
__device__ inline unsigned long long key_of(double value) {
  const unsigned long long bits =
      static_cast<unsigned long long>(__double_as_longlong(value + 0.0));
  constexpr unsigned long long sign = 1ull << 63;
  return bits & sign ? ~bits : bits | sign;
}
__device__ inline double value_of(unsigned long long key) {
  constexpr unsigned long long sign = 1ull << 63;
  return __longlong_as_double(
      static_cast<long long>(key & sign ? key & ~sign : ~key));
}

/// Reduces over the 8 threads of a row.
template <class T, class Join>
__device__ inline T joined_by(T value, Join join) {
#pragma unroll
  for (int gap = kLanes / 2; gap > 0; gap /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, gap));
  return value;
}

/// The number of values of a row with a key of at most `pivot`, the largest key
/// of those, and the least of the others.
struct Parting {
  int count;
  unsigned long long below, above;
};
template <class Value>
__device__ inline Parting parting_at(const Value& value, std::int64_t d,
                                     int lane, unsigned long long pivot) {
  Parting p = {0, 0ull, ~0ull};
#pragma unroll 4
  for (std::int64_t f = lane; f < d; f += kLanes) {
    const unsigned long long key = key_of(value(f));
    const bool under = key <= pivot;
    p.count += under;
    p.below = under && key > p.below ? key : p.below;
    p.above = !under && key < p.above ? key : p.above;
  }
  p.count = joined_by(p.count, [](int a, int b) { return a + b; });
  p.below = joined_by(p.below, [](unsigned long long a, unsigned long long b) {
    return a > b ? a : b;
  });
  p.above = joined_by(p.above, [](unsigned long long a, unsigned long long b) {
    return a < b ? a : b;
  });
  return p;
}

/// Finds the median of value(0), ..., value(d - 1), or the two middle ones of
/// an even number, as core/contract/row_scratch.hpp does. It bisects the range
/// of keys, each time to the nearest existing ones. A value takes about log2(d)
/// passes, 64 at most, and nothing is sorted or stored.
struct Middle {
  double lower, upper;
};
template <class Value>
__device__ inline Middle middle_of(const Value& value, std::int64_t d,
                                   int lane) {
  constexpr unsigned whole_warp = 0xffffffffu;
  const std::int64_t rank =
      (d - 1) / 2;  // from 0; of an even number, the lower
  // The value of that rank is between `low` and `high`.
  unsigned long long low = parting_at(value, d, lane, 0ull).above;
  unsigned long long high = parting_at(value, d, lane, ~0ull).below;
  while (__any_sync(whole_warp, low < high)) {
    const Parting p =
        parting_at(value, d, lane, low < high ? low + (high - low) / 2 : high);
    if (low >= high) continue;  // other rows of the warp are not finished
    if (p.count > rank) {
      high = p.below;
      if (p.count == rank + 1) low = high;
    } else {
      low = p.above;
      if (p.count == rank) high = low;
    }
  }
  const Parting p = parting_at(value, d, lane, high);
  const double lower = value_of(high);
  const bool both = d % 2 == 1 || p.count > rank + 1;
  return {lower + 0.0, (both ? lower : value_of(p.above)) + 0.0};
}

/// Computes prepare_biweight_unit().
__device__ inline void biweight_unit(double* x, std::int64_t d,
                                     std::int64_t end, int lane) {
  const PowerOfTwo scale = scale_for_medians(largest_of(x, end, lane));
  const std::int64_t here = end > 0 ? d : 0;
  const auto value = [&](std::int64_t f) {
    return (x[f] * scale.first) * scale.second;
  };
  const Middle of_row = middle_of(value, here, lane);
  MedianAndMad m;
  m.lower = of_row.lower;
  m.above = (of_row.upper - of_row.lower) * 0.5;
  const Middle of_distances =
      middle_of([&](std::int64_t f) { return fabs(off_median(value(f), m)); },
                here, lane);
  m.mad = (of_distances.lower + of_distances.upper) * 0.5;
  const bool robust = m.mad > 0.0 || end == 0;
  const std::int64_t robust_end = robust ? end : 0;
  const double nine_mads = 9.0 * m.mad;
  const auto biweighted = [&](std::int64_t f) {
    if (f >= d) return 0.0;
    const double ratio = off_median(value(f), m) / nine_mads;
    const double above = ratio > -1.0 ? ratio : -1.0;
    const double t = above < 1.0 ? above : 1.0;
    const double u = fma(t * -1.0, t, 1.0);
    return t * (u * u);
  };
  double s = 0.0;
#pragma unroll 2
  for (std::int64_t f = lane; f < robust_end; f += kLanes) {
    const double c = biweighted(f);
    s = fma(c, c, s);
  }
  const double length = sqrt(joined<Dot>(s));
#pragma unroll 2
  for (std::int64_t f = lane; f < robust_end; f += kLanes)
    x[f] = biweighted(f) / length;
  // For rows whose MAD is 0. All threads of the warp continue, or none.
  if (!__any_sync(0xffffffffu, !robust)) return;
  const std::int64_t rest = robust ? 0 : end;
  for (std::int64_t f = lane; f < rest; f += kLanes) x[f] = value(f);
  centred_unit<false, false>(x, d, rest, lane, FeatureWeights(),
                             FeatureCovariates());
}

}  // namespace cuda
}  // namespace fsknn
