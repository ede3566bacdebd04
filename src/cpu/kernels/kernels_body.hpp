// There is no include guard on purpose: this is the body of one instruction
// set's kernels. The including file has opened its own namespace and provides
//   Lanes: 8 doubles (core/contract/arithmetic.hpp)
//   I32, F32: 16 whole numbers of 32 bits, 16 floats
//   accumulate_tile<Product>(a, b, num_panels, steps, sums)
//   WordSum: the sum of differences of kWordsTogether numbers of 16 bits

/// Processes four pairs at a time. One pair's sum is a chain of dependent
/// operations, and four chains hide each other's latency. Meanwhile the rows of
/// the next four pairs are prefetched: few pairs are of rows that were read
/// recently.
template <class A>
static void exact_of(const double* rows_a, const double* rows_b,
                     std::int64_t padded, const Pair* pairs, std::int64_t count,
                     double* sums) {
  constexpr int kAtOnce = 4;
  std::int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    const double* a[kAtOnce];
    const double* b[kAtOnce];
    const double* next_a[kAtOnce];
    const double* next_b[kAtOnce];
    Lanes s[kAtOnce];
#pragma GCC unroll 4
    for (int c = 0; c < kAtOnce; ++c) {
      a[c] = rows_a + pairs[i + c].row * padded;
      b[c] = rows_b + pairs[i + c].column * padded;
      s[c] = Lanes::all(0.0);
      const Pair& next = pairs[i + 2 * kAtOnce <= count ? i + kAtOnce + c : i];
      next_a[c] = rows_a + next.row * padded;
      next_b[c] = rows_b + next.column * padded;
    }
    for (std::int64_t f = 0; f < padded; f += kLanes) {
#pragma GCC unroll 4
      for (int c = 0; c < kAtOnce; ++c) {
        __builtin_prefetch(next_a[c] + f);
        __builtin_prefetch(next_b[c] + f);
        s[c] = A::step(Lanes::load(a[c] + f), Lanes::load(b[c] + f), s[c]);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kAtOnce; ++c) {
      double v[kLanes];
      s[c].store(v);
      sums[i + c] = A::checked(A::join(v), a[c], b[c], padded);
    }
  }
  for (; i < count; ++i)
    sums[i] = accumulate<Lanes, A>(rows_a + pairs[i].row * padded,
                                   rows_b + pairs[i].column * padded, padded);
}

static void exact(Accumulation accumulation, const double* rows_a,
                  const double* rows_b, std::int64_t padded, const Pair* pairs,
                  std::int64_t count, double* sums) {
  with_accumulation(accumulation, [&](auto sum) {
    exact_of<decltype(sum)>(rows_a, rows_b, padded, pairs, count, sums);
  });
}

/// The rows of the pair after the next are prefetched meanwhile.
static void differences(const std::int16_t* rows_a, const std::int16_t* rows_b,
                        std::int64_t width, const Pair* pairs,
                        std::int64_t count, std::int32_t* sums) {
  constexpr std::int64_t kAhead = 2;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int16_t* a = rows_a + pairs[i].row * width;
    const std::int16_t* b = rows_b + pairs[i].column * width;
    const Pair& next = pairs[i + kAhead < count ? i + kAhead : i];
    const std::int16_t* next_a = rows_a + next.row * width;
    const std::int16_t* next_b = rows_b + next.column * width;
    WordSum sum = WordSum::none();
    for (std::int64_t f = 0; f < width; f += kWordsTogether) {
      __builtin_prefetch(next_a + f);
      __builtin_prefetch(next_b + f);
      sum.add(a + f, b + f);
    }
    sums[i] = sum.total();
  }
}

template <Accumulation kGaps>
static std::uint32_t near_boxes_of(const float* boxes, const float* limit,
                                   const float* other, float other_limit,
                                   std::int64_t width) {
  constexpr std::int64_t kTurn = 8;
  const F32 zero = F32::all(0.0f);
  const F32 most = largest(F32::load(limit), F32::all(other_limit));
  F32 sum = zero;
  for (std::int64_t f = 0; f < width;) {
    for (const std::int64_t end = f + kTurn < width ? f + kTurn : width;
         f < end; ++f) {
      const F32 above =
          F32::load(boxes + 2 * f * Tile::panel) - F32::all(other[2 * f + 1]);
      const F32 below =
          F32::all(other[2 * f]) - F32::load(boxes + (2 * f + 1) * Tile::panel);
      const F32 gap = largest(largest(above, below), zero);
      if (kGaps == Accumulation::squared_difference)
        sum = multiply_add(gap, gap, sum);
      else if (kGaps == Accumulation::absolute_difference)
        sum = sum + gap;
      else
        sum = largest(sum, gap);
    }
    if (at_most(sum, most) == 0) return 0;
  }
  return at_most(sum, most);
}

static std::uint32_t near_boxes(Accumulation gaps, const float* boxes,
                                const float* limit, const float* other,
                                float other_limit, std::int64_t width) {
  if (gaps == Accumulation::squared_difference)
    return near_boxes_of<Accumulation::squared_difference>(boxes, limit, other,
                                                           other_limit, width);
  if (gaps == Accumulation::absolute_difference)
    return near_boxes_of<Accumulation::absolute_difference>(boxes, limit, other,
                                                            other_limit, width);
  return near_boxes_of<Accumulation::largest_difference>(boxes, limit, other,
                                                         other_limit, width);
}

static void masked_pairs(const MaskedTerms& terms, const double* rows_a,
                         const double* rows_b, std::int64_t padded,
                         const Pair* pairs, std::int64_t count, double* found) {
  for (std::int64_t i = 0; i < count; ++i)
    found[i] = masked_pair<Lanes>(terms, rows_a + pairs[i].row * padded,
                                  rows_b + pairs[i].column * padded, padded);
}

static std::uint64_t masked_distance_test(const std::int32_t* sums,
                                          int num_panels,
                                          const MaskedDistanceSide& row,
                                          const MaskedDistanceSide& columns) {
  const F32 zero = F32::all(0.0f), threshold = F32::all(row.threshold[0]);
  const F32 by = F32::all(2.0f * row.scale[0]), w = F32::all(row.w[0]);
  const F32 square = F32::all(row.square[0]);
  const F32 minus_largest = F32::all(row.minus_largest[0]);
  const F32 missing = F32::all(row.missing[0]);
  std::uint64_t keep = 0;
  for (int p = 0; p < num_panels * Tile::panel; p += Tile::panel) {
    const F32 x = largest(
        multiply_add(F32::load(columns.missing + p), minus_largest, square), w);
    const F32 y =
        largest(multiply_add(missing, F32::load(columns.minus_largest + p),
                             F32::load(columns.square + p)),
                F32::load(columns.w + p));
    const F32 most = multiply_add(to_float(I32::load(sums + p)) * by,
                                  F32::load(columns.scale + p), zero - (x + y));
    const F32 t = smallest(threshold, F32::load(columns.threshold + p));
    keep |= static_cast<std::uint64_t>(at_most(t, most)) << p;
  }
  return keep;
}

template <Sign kSign>
static std::uint64_t masked_test_of(const std::int32_t* sums, int num_panels,
                                    float unit, const MaskedSide& row,
                                    const MaskedSide& columns) {
  const F32 zero = F32::all(0.0f), threshold = F32::all(row.threshold[0]);
  const F32 error = F32::all(row.error[0]), alpha = F32::all(row.alpha[0]);
  const F32 w = F32::all(row.w[0]), by = F32::all(unit);
  std::uint64_t keep = 0;
  for (int p = 0; p < num_panels * Tile::panel; p += Tile::panel) {
    F32 most = to_float(I32::load(sums + p)) * by;
    if (kSign == Sign::negative) most = zero - most;
    if (kSign == Sign::absolute) most = largest(most, zero - most);
    most = multiply_add(alpha, F32::load(columns.alpha + p),
                        most + (error + F32::load(columns.error + p)));
    const F32 t = smallest(threshold, F32::load(columns.threshold + p));
    keep |= static_cast<std::uint64_t>(
                at_most(t * (w * F32::load(columns.w + p)), most) |
                at_most(t, zero))
            << p;
  }
  return keep;
}

static std::uint64_t masked_test(Sign sign, const std::int32_t* sums,
                                 int num_panels, float unit,
                                 const MaskedSide& row,
                                 const MaskedSide& columns) {
  switch (sign) {
    case Sign::absolute:
      return masked_test_of<Sign::absolute>(sums, num_panels, unit, row,
                                            columns);
    case Sign::negative:
      return masked_test_of<Sign::negative>(sums, num_panels, unit, row,
                                            columns);
    case Sign::signed_value:
      return masked_test_of<Sign::signed_value>(sums, num_panels, unit, row,
                                                columns);
  }
  throw_unknown("sign", static_cast<int>(sign));
}

/// Adds two at a time, because each sum depends on the last.
static void masked_sums(const float* panel, const std::int32_t* list,
                        std::int64_t length, float* sum, float* square) {
  F32 s0 = F32::all(0.0f), s1 = s0, q0 = s0, q1 = s0;
  std::int64_t at = 0;
  for (; at + 2 <= length; at += 2) {
    const F32 a = F32::load(panel + std::int64_t{Tile::panel} * list[at]);
    const F32 b = F32::load(panel + std::int64_t{Tile::panel} * list[at + 1]);
    s0 = s0 + a;
    s1 = s1 + b;
    q0 = multiply_add(a, a, q0);
    q1 = multiply_add(b, b, q1);
  }
  if (at < length) {
    const F32 a = F32::load(panel + std::int64_t{Tile::panel} * list[at]);
    s0 = s0 + a;
    q0 = multiply_add(a, a, q0);
  }
  (s0 + s1).store(sum);
  (q0 + q1).store(square);
}

static std::uint64_t triple_tables(const TripleTableRow& row,
                                   const TripleTableColumns& columns,
                                   const std::int32_t* sums, int num_panels,
                                   float least, float* largest_entries) {
  F32 pair[4], weight[4];
  for (int q = 0; q < 4; ++q) {
    pair[q] = F32::all(row.pair[q]);
    weight[q] = F32::all(row.weight[q]);
  }
  const F32 two = F32::all(2.0f), t = F32::all(least);
  std::uint64_t keep = 0;
  for (int p = 0; p < num_panels * Tile::panel; p += Tile::panel) {
    const F32 g = F32::load(columns.weight + p);
    // The third allele is the counted one in `with`, else the other one.
    F32 with[4];
    with[3] = to_float(I32::load(sums + p));
    with[2] = F32::load(columns.with_apex + p) - with[3];
    with[1] = F32::load(columns.with_row + p) - with[3];
    with[0] = F32::load(columns.without + p) - with[1];
    F32 counted = with[0] * weight[0];
    F32 other = (pair[0] - with[0]) * weight[0];
#pragma GCC unroll 3
    for (int q = 1; q < 4; ++q) {
      counted = largest(counted, with[q] * weight[q]);
      other = largest(other, (pair[q] - with[q]) * weight[q]);
    }
    const F32 entry = largest(counted * g, other * (two - g));
    entry.store(largest_entries + p);
    keep |= static_cast<std::uint64_t>(at_most(t, entry)) << p;
  }
  return keep;
}

static void accumulate_products(Product product, const std::int32_t* a,
                                const std::int32_t* b, int num_panels,
                                std::int64_t steps, std::int32_t* sums) {
#define FSKNN_CASE(which) \
  case Product::which:    \
    return accumulate_tile<Product::which>(a, b, num_panels, steps, sums);
  switch (product) {
    FSKNN_CASE(dot)
    FSKNN_CASE(byte_dot)
    FSKNN_CASE(count_dot)
    FSKNN_CASE(byte_difference)
    FSKNN_CASE(smaller_sum)
    FSKNN_CASE(largest_difference)
    FSKNN_CASE(common_bits)
    FSKNN_CASE(float_smaller_sum)
    FSKNN_CASE(float_largest_difference)
  }
#undef FSKNN_CASE
  throw_unknown("product", static_cast<int>(product));
}

/// Loads the 16 sums of one row in the form that the test reads.
template <Test kTest>
static inline F32 float_sum(const std::int32_t* sums) {
  if (kTest == Test::float_sum_distance ||
      kTest == Test::float_largest_difference || kTest == Test::float_overlap)
    return F32::load(sums);
  return to_float(I32::load(sums));
}

/// The left side of float tests, without the row's own term.
template <Test kTest>
static inline F32 lower_value(const F32& sum, const Side& row,
                              const Side& columns) {
  if (kTest == Test::float_sum_distance)
    return multiply_add(sum, F32::all(-2.0f), F32::load(columns.first));
  if (kTest == Test::float_largest_difference)
    return sum + F32::load(columns.first);
  const F32 a = F32::load(columns.first), w = F32::load(columns.second);
  return multiply_add(sum * a, F32::all(-2.0f * as_float(row.first[0])), w);
}

template <Test kTest>
static inline I32 similarity_of(const I32& sum) {
  if (kTest == Test::absolute_similarity ||
      kTest == Test::scaled_absolute_similarity)
    return largest(sum, negate(sum));
  if (kTest == Test::negative_similarity ||
      kTest == Test::scaled_negative_similarity)
    return negate(sum);
  return sum;
}

template <Test kTest>
constexpr bool is_scaled() {
  return kTest == Test::scaled_similarity ||
         kTest == Test::scaled_absolute_similarity ||
         kTest == Test::scaled_negative_similarity;
}

/// g_j plus `sign` times the similarity of 16 columns.
template <Test kTest>
static inline F32 scaled_value(const std::int32_t* sums, const Side& row,
                               const Side& columns, float sign) {
  const F32 sum = to_float(similarity_of<kTest>(I32::load(sums)));
  return multiply_add(sum * F32::load(columns.first),
                      F32::all(sign * as_float(row.first[0])),
                      F32::load(columns.second));
}

template <Test kTest>
constexpr bool is_of_two_values() {
  return kTest == Test::two_values || kTest == Test::two_values_absolute ||
         kTest == Test::two_values_negative;
}

/// The similarity of 16 columns.
template <Test kTest>
static inline F32 two_value_similarity(const std::int32_t* sums,
                                       const Side& row, const Side& columns) {
  const F32 less =
      F32::load(columns.second) * F32::all(-as_float(row.second[0]));
  const F32 s =
      multiply_add(to_float(I32::load(sums)) * F32::load(columns.first),
                   F32::all(as_float(row.first[0])), less);
  const F32 opposite = F32::all(0.0f) - s;
  if (kTest == Test::two_values_absolute) return largest(s, opposite);
  return kTest == Test::two_values_negative ? opposite : s;
}

/// The largest entries of the tables of a row and 16 columns, in units of K
/// (table_numbers.hpp). first, second, third: the members of TableNumbers.
static inline F32 largest_entry(const std::int32_t* sums, const Side& row,
                                const Side& columns) {
  const F32 two = F32::all(2.0f), sum = to_float(I32::load(sums));
  const F32 n = F32::all(as_float(row.first[0])),
            n_j = F32::load(columns.first);
  const F32 m = F32::all(as_float(row.second[0]));
  const F32 g = F32::all(as_float(row.third[0])),
            g_j = F32::load(columns.third);
  const F32 h = two - g, h_j = two - g_j;
  const F32 both = sum * (g * g_j);
  const F32 none = ((m + F32::load(columns.second)) + sum) * (h * h_j);
  const F32 one = (n - sum) * (g * h_j);
  const F32 other = (n_j - sum) * (h * g_j);
  return largest(largest(both, none), largest(one, other));
}

/// The mask of 16 columns for one row.
template <Test kTest>
static inline std::uint32_t test_panel(const std::int32_t* sums,
                                       const Side& row, const Side& columns) {
  if (kTest == Test::squared_distance || kTest == Test::float_sum_distance ||
      kTest == Test::float_largest_difference) {
    const F32 t = largest(F32::all(as_float(row.threshold[0])),
                          F32::load(columns.threshold));
    const F32 w_row = F32::all(as_float(
        kTest == Test::squared_distance ? row.second[0] : row.first[0]));
    return at_most(lower_value<kTest>(float_sum<kTest>(sums), row, columns),
                   t - w_row);
  }
  if (kTest == Test::overlap || kTest == Test::float_overlap) {
    const F32 s = F32::load(columns.first) + F32::all(as_float(row.first[0]));
    const F32 g = F32::load(columns.second) + F32::all(as_float(row.second[0]));
    const F32 t = smallest(F32::all(as_float(row.threshold[0])),
                           F32::load(columns.threshold));
    const F32 sum = float_sum<kTest>(sums);
    return at_most(s * t, (sum + sum) + g);
  }
  if (kTest == Test::product) {
    const F32 a = F32::load(columns.first) * F32::all(as_float(row.first[0]));
    const F32 t = smallest(F32::all(as_float(row.threshold[0])),
                           F32::load(columns.threshold));
    const F32 sum = float_sum<kTest>(sums) + F32::all(as_float(row.second[0]));
    return at_most(t, a * sum);
  }
  if (kTest == Test::byte_difference) {
    const F32 w = F32::load(columns.first) + F32::all(as_float(row.first[0]));
    const F32 t = largest(F32::all(as_float(row.threshold[0])),
                          F32::load(columns.threshold));
    return at_most(float_sum<kTest>(sums) - F32::load(columns.second),
                   multiply_add(w, t, F32::all(as_float(row.second[0]))));
  }
  if (is_scaled<kTest>()) {
    const F32 t = smallest(F32::all(as_float(row.threshold[0])),
                           F32::load(columns.threshold));
    return at_most(t - F32::all(as_float(row.second[0])),
                   scaled_value<kTest>(sums, row, columns, 1.0f));
  }
  if (kTest == Test::table) {
    const F32 t = smallest(F32::all(as_float(row.threshold[0])),
                           F32::load(columns.threshold));
    return at_most(t, largest_entry(sums, row, columns));
  }
  if (is_of_two_values<kTest>()) {
    const F32 t = smallest(F32::all(as_float(row.threshold[0])),
                           F32::load(columns.threshold));
    return at_most(t, two_value_similarity<kTest>(sums, row, columns));
  }
  const I32 sum = I32::load(sums);
  if (kTest == Test::sum_distance) {
    const I32 p = I32::load(columns.first);
    const I32 t =
        largest(I32::all(row.threshold[0]), I32::load(columns.threshold));
    return at_most(p - (sum + sum), t - I32::all(row.first[0]));
  }
  if (kTest == Test::largest_difference) {
    const I32 t =
        largest(I32::all(row.threshold[0]), I32::load(columns.threshold));
    return at_most(sum, t);
  }
  const I32 t =
      smallest(I32::all(row.threshold[0]), I32::load(columns.threshold));
  return at_most(t, similarity_of<kTest>(sum));
}

template <Test kTest>
static void test_tile(const std::int32_t* sums, int num_panels,
                      const Side& rows, const Side& columns,
                      std::uint64_t* keep) {
  for (int r = 0; r < Tile::rows; ++r) {
    const Side row = rows.at(r);
    std::uint64_t mask = 0;
    for (int p = 0; p < num_panels; ++p) {
      mask |= static_cast<std::uint64_t>(
                  test_panel<kTest>(sums + r * Tile::columns + p * Tile::panel,
                                    row, columns.at(p * Tile::panel)))
              << (p * Tile::panel);
    }
    keep[r] = mask;
  }
}

/// An upper bound, without terms that depend only on the row; smaller is
/// nearer.
template <Test kTest>
static inline F32 upper_key(const std::int32_t* sums, const Side& row,
                            const Side& columns) {
  if (kTest == Test::squared_distance || kTest == Test::float_sum_distance ||
      kTest == Test::float_largest_difference)
    return lower_value<kTest>(float_sum<kTest>(sums), row, columns);
  if (kTest == Test::overlap || kTest == Test::float_overlap) {
    const F32 s = F32::load(columns.first) + F32::all(as_float(row.first[0]));
    const F32 g = F32::load(columns.second) + F32::all(as_float(row.second[0]));
    const F32 sum = float_sum<kTest>(sums);
    return (g - (sum + sum)) / s;
  }
  if (kTest == Test::product)
    return F32::load(columns.first) *
           (F32::all(as_float(row.second[0])) - float_sum<kTest>(sums));
  if (kTest == Test::byte_difference) {
    const F32 w = F32::load(columns.first) + F32::all(as_float(row.first[0]));
    const F32 g = F32::load(columns.second) + F32::all(as_float(row.second[0]));
    return (float_sum<kTest>(sums) + g) / w;
  }
  if (is_scaled<kTest>()) return scaled_value<kTest>(sums, row, columns, -1.0f);
  if (kTest == Test::table)
    return F32::all(0.0f) - largest_entry(sums, row, columns);
  if (is_of_two_values<kTest>())
    return F32::all(0.0f) - two_value_similarity<kTest>(sums, row, columns);
  const I32 sum = I32::load(sums);
  if (kTest == Test::sum_distance)
    return F32::load(columns.first) - to_float(sum + sum);
  if (kTest == Test::largest_difference) return to_float(sum);
  return to_float(negate(similarity_of<kTest>(sum)));
}

template <Test kTest>
static void lower_best_of(const std::int32_t* sums, int num_panels,
                          const Side& row, const Side& columns, int group,
                          int num_groups, float* best) {
  for (int p = 0; p < num_panels; ++p) {
    float* to = best + (group + p) % num_groups * Tile::panel;
    const F32 key = upper_key<kTest>(sums + p * Tile::panel, row,
                                     columns.at(p * Tile::panel));
    smallest(F32::load(to), key).store(to);
  }
}

#define FSKNN_FOR_TEST(call)                                                \
  switch (test) {                                                           \
    call(similarity) call(absolute_similarity) call(negative_similarity)    \
        call(squared_distance) call(sum_distance) call(largest_difference)  \
            call(overlap) call(product) call(byte_difference)               \
                call(scaled_similarity) call(scaled_absolute_similarity)    \
                    call(scaled_negative_similarity) call(two_values)       \
                        call(two_values_absolute) call(two_values_negative) \
                            call(float_sum_distance)                        \
                                call(float_largest_difference)              \
                                    call(float_overlap) call(table)         \
  }

static void test_sums(Test test, const std::int32_t* sums, int num_panels,
                      const Side& rows, const Side& columns,
                      std::uint64_t* keep) {
#define FSKNN_CALL(which) \
  case Test::which:       \
    return test_tile<Test::which>(sums, num_panels, rows, columns, keep);
  FSKNN_FOR_TEST(FSKNN_CALL)
#undef FSKNN_CALL
}

static void lower_best(Test test, const std::int32_t* sums, int num_panels,
                       const Side& row, const Side& columns, int group,
                       int num_groups, float* best) {
#define FSKNN_CALL(which)                                                    \
  case Test::which:                                                          \
    return lower_best_of<Test::which>(sums, num_panels, row, columns, group, \
                                      num_groups, best);
  FSKNN_FOR_TEST(FSKNN_CALL)
#undef FSKNN_CALL
}
#undef FSKNN_FOR_TEST
