// Are lists of candidates cut, arranged, made and put in order as a sort of
// them says? Lists of every length where ways part (a quarter and half of what
// there is room for, all of it, one more), of similarities that are spread,
// alike, infinite or no numbers, of slots that stand in a list twice or are the
// row's own. What a search makes of lists is in tests/testthat; this is what no
// search makes, and what one would hide. Ends with status 1 where anything is
// wrong.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "core/contract/arithmetic.hpp"
#include "core/contract/metrics.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/exact/buckets.cuh"
#include "cuda/exact/candidates.hpp"
#include "cuda/exact/shared_pairs.cuh"

namespace {

using namespace fsknn;
using namespace fsknn::cuda;
using Random = std::mt19937_64;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
DeviceBuffer<T> sent(const std::vector<T>& values, const Stream& stream) {
  const std::int64_t size = static_cast<std::int64_t>(values.size());
  DeviceBuffer<T> buffer(std::max<std::int64_t>(1, size));
  upload(buffer, values.data(), size, stream);
  stream.wait();
  return buffer;
}

template <class T>
std::vector<T> fetched(const DeviceBuffer<T>& buffer, std::int64_t size,
                       const Stream& stream) {
  std::vector<T> values(at(size));
  download(values.data(), buffer, size, stream);
  stream.wait();
  return values;
}

// --- Cuts --------------------------------------------------------------------

using Similarity = std::function<float(Random&, int i)>;

const std::vector<std::pair<const char*, Similarity>> kSimilarities = {
    {"normal",
     [](Random& r, int) {
       return static_cast<float>(std::normal_distribution<double>()(r));
     }},
    {"alike", [](Random&, int) { return -3.5f; }},
    {"few values", [](Random& r, int) { return 1.0f * (r() % 5); }},
    {"next to each other",
     [](Random& r, int) {
       return r() % 3 == 0 ? 1.0f : std::nextafterf(1.0f, 2.0f);
     }},
    {"any size",
     [](Random& r, int) {
       return std::ldexp(r() % 2 ? 1.0f : -1.5f,
                         static_cast<int>(r() % 270) - 145);
     }},
    {"infinite",
     [](Random& r, int) {
       return r() % 3 == 0 ? kInf : r() % 3 == 0 ? -kInf : 0.1f * (r() % 90);
     }},
    {"no numbers",
     [](Random& r, int) { return r() % 4 == 0 ? kNone : 0.1f * (r() % 90); }},
    {"ascending", [](Random&, int i) { return 1.0f + i; }},
    {"one far off",
     [](Random&, int i) { return i == 3 ? 1e30f : -1e-30f * i; }},
};

/// What a candidate of no error is at least: see least_similarity().
float least_of(float s) { return s < kInf && s > -kInf ? s : -kInf; }

struct CutCase {
  std::int32_t capacity, k;
  bool all_valid, filled;
};

std::int64_t wrong_cuts(const CutCase& its, Random& random) {
  const std::int32_t capacity = its.capacity, k = its.k;
  std::vector<std::int32_t> counts_of = {k - 1,
                                         k,
                                         k + 1,
                                         capacity / 4,
                                         capacity / 4 + 1,
                                         capacity / 2,
                                         capacity / 2 + 1,
                                         capacity - 1,
                                         capacity,
                                         capacity + 1,
                                         capacity + 77};
  if (its.filled) counts_of = {capacity};
  const std::int32_t columns = capacity + 100;
  struct List {
    std::int32_t count, own;
    const char* name;
    std::vector<Candidate> entries;
  };
  std::vector<List> all;
  for (const auto& family : kSimilarities)
    for (const std::int32_t count : counts_of) {
      if (count < 0) continue;
      List list = {count, 0, family.first, {}};
      std::vector<std::int32_t> slots(at(columns));
      for (std::int32_t c = 0; c < columns; ++c) slots[at(c)] = c;
      std::shuffle(slots.begin(), slots.end(), random);
      for (std::int32_t i = 0; i < std::min(count, capacity); ++i) {
        float s = family.second(random, i);
        // Where all are valid none is no number.
        if (its.all_valid && !(s == s)) s = -kInf;
        list.entries.push_back({s, slots[at(i)]});
      }
      list.own = list.entries.size() > 1 ? list.entries[1].slot : 0;
      all.push_back(list);
    }
  const std::int64_t n = static_cast<std::int64_t>(all.size());
  // Every 13th column is padding; a column's number is its place, plus 5.
  std::vector<std::int32_t> column_places, column_ids;
  for (std::int32_t c = 0; c < columns; ++c) {
    column_places.push_back(c % 13 == 12 && !its.all_valid ? -1 : c);
    column_ids.push_back(c + 5);
  }
  std::vector<Candidate> entries(at(n * capacity), {0.0f, 0});
  std::vector<std::int32_t> counts, places, row_ids;
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy(all[at(i)].entries.begin(), all[at(i)].entries.end(),
              entries.begin() + i * capacity);
    counts.push_back(all[at(i)].count);
    places.push_back(static_cast<std::int32_t>(i));
    row_ids.push_back(its.all_valid ? -7 : all[at(i)].own + 5);
  }

  Stream stream;
  DeviceBuffer<Candidate> d_entries = sent(entries, stream);
  DeviceBuffer<std::int32_t> d_counts = sent(counts, stream),
                             d_places = sent(places, stream),
                             d_rows = sent(row_ids, stream),
                             d_column_places = sent(column_places, stream),
                             d_column_ids = sent(column_ids, stream), redone(n),
                             num_redone(1);
  DeviceBuffer<float> thresholds =
      sent(std::vector<float>(at(n), -kInf), stream);
  DeviceBuffer<float> bounds = sent(std::vector<float>(at(n), 7.0f), stream);
  clear_from(num_redone, 0, stream);
  Cut cut;
  cut.lists.entries = d_entries.data();
  cut.lists.counts = d_counts.data();
  cut.lists.thresholds = thresholds.data();
  cut.lists.bounds = bounds.data();
  cut.lists.places = d_places.data();
  cut.lists.column_places = d_column_places.data();
  cut.lists.row_ids = d_rows.data();
  cut.lists.column_ids = d_column_ids.data();
  cut.lists.num_slots = n;
  cut.lists.capacity = capacity;
  cut.redo.places = redone.data();
  cut.redo.count = num_redone.data();
  cut.k = k;
  cut.end_slot = {n};
  cut.filled = its.filled ? capacity : 0;
  cut.all_valid = its.all_valid;
  start_cut(cut, stream.get());
  entries = fetched(d_entries, n * capacity, stream);
  const std::vector<std::int32_t> new_counts = fetched(d_counts, n, stream);
  const std::vector<float> now = fetched(thresholds, n, stream);
  const std::vector<float> left = fetched(bounds, n, stream);
  const std::int32_t num_again = fetched(num_redone, 1, stream)[0];
  const std::vector<std::int32_t> again = fetched(redone, num_again, stream);
  const std::set<std::int32_t> to_redo(again.begin(), again.end());

  std::int64_t wrong = again.size() != to_redo.size();
  for (std::int64_t i = 0; i < n; ++i) {
    const List& list = all[at(i)];
    std::vector<Candidate> valid;
    std::vector<float> least;
    for (const Candidate& c : list.entries) {
      const bool there =
          its.all_valid || (column_places[at(c.slot)] >= 0 &&
                            c.slot != list.own && c.similarity == c.similarity);
      if (!there) continue;
      valid.push_back(c);
      least.push_back(least_of(c.similarity));
    }
    std::sort(least.rbegin(), least.rend());
    const bool over = list.count > capacity;
    const std::int32_t found = static_cast<std::int32_t>(valid.size());
    const float t = over ? left[at(i)] : now[at(i)];
    bool good = over == (to_redo.count(static_cast<std::int32_t>(i)) > 0);
    if (list.count < k) {
      good = good && new_counts[at(i)] == list.count && now[at(i)] == -kInf;
    } else {
      if (found < k) {
        good = good && t == -kInf;
      } else {
        // How many reach the threshold, and how many are beyond it.
        const auto reach = std::count_if(least.begin(), least.end(),
                                         [&](float s) { return s >= t; });
        const float kth = least[at(k - 1)];
        const std::int32_t enough = k <= 8 ? k : k + k / 64;
        good = good && reach >= k && (reach <= enough || t == kth);
        if (k <= 8) good = good && t == kth;
      }
      if (over) {
        good = good && new_counts[at(i)] == kOverflowed && now[at(i)] == kInf;
      } else {
        std::set<std::int32_t> kept, wanted;
        for (const Candidate& c : valid)
          if (c.similarity >= t) wanted.insert(c.slot);
        const std::int32_t some = new_counts[at(i)];
        good = good && some >= 0 && some <= capacity;
        bool first = true;  // those that the threshold was set by come first
        for (std::int32_t e = 0; good && e < some; ++e) {
          const Candidate& c = entries[at(i * capacity + e)];
          kept.insert(c.slot);
          const bool sets = least_of(c.similarity) >= t;
          if (k <= 32 && found >= k && sets && !first) good = false;
          first = first && sets;
        }
        good = good && kept == wanted &&
               some == static_cast<std::int32_t>(kept.size());
      }
    }
    if (good) continue;
    ++wrong;
    std::printf("cut: capacity %d, k %d, %d of \"%s\": wrong\n", capacity, k,
                list.count, list.name);
  }
  return wrong;
}

// --- Orders ------------------------------------------------------------------

constexpr int kBlock = 256;

/// Shared: distances and numbers, and two orders of them, dynamic. done: 1
/// where there is an order.
__global__ void __launch_bounds__(kBlock)
    order_entries(const double* distance, const std::int32_t* index, int count,
                  std::uint16_t* sorted, int* done) {
  __shared__ BucketMemory<kBlock> memory;
  extern __shared__ double values[];
  const Entries found = {values,
                         reinterpret_cast<std::int32_t*>(values + count)};
  std::uint16_t* const numbers =
      reinterpret_cast<std::uint16_t*>(found.index + count);
  const ItemOrder order = {numbers, numbers + count};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock)
    found.set(i, {distance[i], index[i]});
  __syncthreads();
  const bool is_done = order_neighbours(found, count, memory, order);
  if (threadIdx.x == 0) *done = is_done;
  for (int i = static_cast<int>(threadIdx.x); is_done && i < count; i += kBlock)
    sorted[i] = order.sorted[i];
}

struct OrderCase {
  const char* name;
  std::function<double(Random&, int i)> distance;
  /// 1: there is an order, 0: there is none, -1: nobody knows.
  int done;
  bool twice;  ///< each entry stands there twice
};

const double kFar = std::numeric_limits<double>::infinity();

const std::vector<OrderCase> kOrders = {
    {"spread",
     [](Random& r, int) { return std::generate_canonical<double, 53>(r); }, 1,
     false},
    {"spread, twice",
     [](Random& r, int) { return std::generate_canonical<double, 53>(r); }, 1,
     true},
    {"below and above 0",
     [](Random& r, int) {
       return std::generate_canonical<double, 53>(r) - 0.5;
     },
     1, false},
    {"ties", [](Random&, int i) { return i % 200 / 7.0; }, 1, false},
    {"all alike", [](Random&, int) { return 0.25; }, 0, false},
    {"one infinite", [](Random&, int i) { return i == 0 ? kFar : 1.0 * i; }, 0,
     false},
    {"one no number",
     [](Random&, int i) {
       return i == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 * i;
     },
     0, false},
    {"too far apart", [](Random&, int i) { return i == 0 ? 1e300 : 1.0 * i; },
     0, false},
    {"one far off",
     [](Random&, int i) { return i == 0 ? 1e9 : 1.0 + 1e-3 * i; }, -1, false},
};

std::int64_t wrong_orders(const OrderCase& its, int count, Random& random) {
  std::vector<double> distance;
  std::vector<std::int32_t> index;
  for (int i = 0; i < count; ++i) {
    const bool again = its.twice && i % 2 == 1;
    distance.push_back(again ? distance.back() : its.distance(random, i));
    index.push_back(again ? index.back() : (i * 7919) % 1000003);
  }
  Stream stream;
  DeviceBuffer<double> d_distance = sent(distance, stream);
  DeviceBuffer<std::int32_t> d_index = sent(index, stream);
  DeviceBuffer<std::uint16_t> d_sorted(count);
  DeviceBuffer<int> d_done(1);
  clear_from(d_done, 0, stream);
  order_entries<<<1, kBlock, static_cast<unsigned>(count) * 16 + 16,
                  stream.get()>>>(d_distance.data(), d_index.data(), count,
                                  d_sorted.data(), d_done.data());
  CUDA_CHECK(cudaGetLastError());
  const bool done = fetched(d_done, 1, stream)[0] != 0;
  // Of one or two entries that differ there is an order, whatever they are.
  const bool few = count < 2;
  std::vector<int> expected(at(count));
  for (int i = 0; i < count; ++i) expected[at(i)] = i;
  std::sort(expected.begin(), expected.end(), [&](int a, int b) {
    if (distance[at(a)] != distance[at(b)])
      return distance[at(a)] < distance[at(b)];
    if (index[at(a)] != index[at(b)]) return index[at(a)] < index[at(b)];
    return a < b;
  });
  bool good = few || (its.twice && count < 3) || its.done < 0 ||
              done == (its.done == 1);
  if (done) {
    const std::vector<std::uint16_t> sorted = fetched(d_sorted, count, stream);
    for (int i = 0; i < count; ++i)
      good = good && sorted[at(i)] == expected[at(i)];
  }
  if (!good) std::printf("order: %d of \"%s\": wrong\n", count, its.name);
  return !good;
}

// --- Pairs that two lists have -----------------------------------------------

struct SharedCase {
  std::int64_t points, features, k;
  std::int32_t capacity;
};

/// Rows of whole numbers, whose sums are exact in any order.
std::int64_t wrong_shared(const SharedCase& its, Random& random) {
  const std::int64_t n = its.points, k = its.k;
  const std::int64_t padded = padded_features(its.features);
  const std::int32_t capacity = its.capacity, half = most_shared(capacity);
  std::vector<double> rows(at(n * padded));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < its.features; ++f)
      rows[at(i * padded + f)] = static_cast<double>(random() % 9);
  // Every 11th slot is padding.
  std::vector<std::int32_t> places, slots, ids;
  for (std::int64_t p = 0; p < n; ++p) {
    if (places.size() % 11 == 10) places.push_back(-1);
    slots.push_back(static_cast<std::int32_t>(places.size()));
    places.push_back(static_cast<std::int32_t>(p));
    ids.push_back(static_cast<std::int32_t>((p * 7) % n));  // n is no 7 m
  }
  const std::int64_t num_slots = static_cast<std::int64_t>(places.size());
  std::vector<Candidate> entries(at(num_slots * capacity), {0.0f, 0});
  std::vector<std::int32_t> counts(at(num_slots), 0);
  std::set<std::int32_t> redone;     // by place
  std::set<std::int32_t> not_sound;  // of those the ones with entries alike
  const std::int32_t others = static_cast<std::int32_t>(n - 1);
  for (std::int32_t p = 0; p < n; ++p) {
    const std::int32_t least = static_cast<std::int32_t>(k);
    const std::int32_t most = std::min(half, others);
    std::int32_t count =
        least + static_cast<std::int32_t>(random() % at(most - least + 1));
    if (p % 16 == 0) count = least;
    if (p % 16 == 1) count = most;
    if (p % 16 == 2) count = std::min(half + 1, capacity);
    if (p % 16 == 3) count = least - 1;
    const bool own = p % 16 == 4, twice = p % 16 == 5 && count >= 2;
    std::vector<std::int32_t> choice;
    for (std::int32_t q = 0; q < n; ++q)
      if (q != p) choice.push_back(q);
    std::shuffle(choice.begin(), choice.end(), random);
    Candidate* const list =
        entries.data() + slots[at(p)] * std::int64_t{capacity};
    for (std::int32_t e = 0; e < std::min(count, others); ++e)
      list[e] = {0.0f, slots[at(choice[at(e)])]};
    if (own) list[count / 2].slot = slots[at(p)];
    if (twice) list[0].slot = list[count - 1].slot;
    if (own || twice) not_sound.insert(p);
    if (p % 16 == 6) count = capacity + 3;
    if (p % 16 == 7) count = kOverflowed;
    counts[at(slots[at(p)])] = count;
    if (own || twice || (count != kOverflowed && (count < k || count > half)))
      redone.insert(p);
  }

  Stream stream;
  DeviceBuffer<double> d_rows = sent(rows, stream), d_sums(n), distance(n * k);
  DeviceBuffer<Candidate> d_entries = sent(entries, stream);
  DeviceBuffer<std::int32_t> d_counts = sent(counts, stream),
                             d_places = sent(places, stream),
                             d_ids = sent(ids, stream), index(n * k), redo(n),
                             num_redo(1);
  std::vector<std::int32_t> list_rows(at(n));
  for (std::int64_t p = 0; p < n; ++p)
    list_rows[at(p)] = static_cast<std::int32_t>(p);
  DeviceBuffer<std::int32_t> d_list_rows = sent(list_rows, stream);
  DeviceBuffer<float> thresholds =
      sent(std::vector<float>(at(num_slots), 2.0f), stream);
  DeviceBuffer<float> bounds =
      sent(std::vector<float>(at(num_slots), 9.0f), stream);
  clear_from(d_sums, 0, stream);
  clear_from(num_redo, 0, stream);
  ExactStep step;
  step.lists.entries = d_entries.data();
  step.lists.counts = d_counts.data();
  step.lists.thresholds = thresholds.data();
  step.lists.bounds = bounds.data();
  step.lists.places = step.lists.column_places = d_places.data();
  step.lists.row_ids = step.lists.column_ids = d_ids.data();
  step.lists.num_slots = num_slots;
  step.lists.capacity = capacity;
  step.redo.places = redo.data();
  step.redo.count = num_redo.data();
  step.end_slot = {num_slots};
  step.rows = step.columns = d_rows.data();
  step.row_sums = step.column_sums = d_sums.data();
  step.list_rows = d_list_rows.data();
  step.padded = padded;
  step.nearest = {distance.data(), index.data(), k};
  std::int64_t wrong = !may_share_pairs(step);
  run_exact_shared(find_metric("manhattan", "signed"), step, stream);
  const std::vector<double> found = fetched(distance, n * k, stream);
  const std::vector<std::int32_t> named = fetched(index, n * k, stream);
  const std::vector<float> left = fetched(bounds, num_slots, stream);
  const std::int32_t num_redone = fetched(num_redo, 1, stream)[0];
  const std::vector<std::int32_t> again = fetched(redo, num_redone, stream);
  wrong += std::set<std::int32_t>(again.begin(), again.end()) != redone ||
           again.size() != redone.size();
  for (const std::int32_t p : not_sound)
    wrong += left[at(slots[at(p)])] != -kInf;
  if (wrong > 0) std::printf("pairs: other rows are done again\n");

  // Of long rows some.
  const std::int64_t apart = n * padded > 100000 ? 29 : 1;
  for (std::int64_t p = 0; p < n; p += apart) {
    const std::int32_t count = counts[at(slots[at(p)])];
    if (count == kOverflowed || redone.count(static_cast<std::int32_t>(p)) > 0)
      continue;
    std::vector<std::pair<double, std::int32_t>> nearest;
    for (std::int32_t e = 0; e < count; ++e) {
      const std::int32_t slot =
          entries[at(slots[at(p)] * std::int64_t{capacity} + e)].slot;
      const std::int64_t q = places[at(slot)];
      double sum = 0.0;
      for (std::int64_t f = 0; f < padded; ++f)
        sum += std::fabs(rows[at(p * padded + f)] - rows[at(q * padded + f)]);
      nearest.emplace_back(sum, ids[at(q)]);
    }
    std::sort(nearest.begin(), nearest.end());
    bool good = true;
    for (std::int64_t rank = 0; rank < k; ++rank)
      good = good && found[at(p * k + rank)] == nearest[at(rank)].first &&
             named[at(p * k + rank)] == nearest[at(rank)].second;
    if (good) continue;
    ++wrong;
    std::printf("pairs: point %d of %d, k %d, capacity %d: wrong\n",
                static_cast<int>(p), static_cast<int>(n), static_cast<int>(k),
                capacity);
  }
  return wrong;
}

}  // namespace

int main() {
  Random random(1);
  std::int64_t cuts = 0, orders = 0, pairs = 0;
  for (const std::int32_t capacity :
       {64, 128, 256, 512, 700, 768, 1024, 2048, 4096, 8192})
    for (const std::int32_t k :
         {1, 2, 8, 9, 20, 32, 33, capacity / 8, capacity / 4, capacity / 2})
      for (const bool all_valid : {false, true})
        for (const bool filled : {false, true})
          if (k <= capacity / 2)
            cuts += wrong_cuts({capacity, k, all_valid, filled}, random);
  std::printf("cuts: %lld wrong\n", static_cast<long long>(cuts));
  for (const OrderCase& its : kOrders)
    for (const int count : {1, 2, 3, 31, 32, 255, 256, 257, 1024, 1999, 2048})
      orders += wrong_orders(its, count, random);
  std::printf("orders: %lld wrong\n", static_cast<long long>(orders));
  // Lists that are put in order by buckets and sorted, and rows that take
  // several parts of a cache and, by slots, more than one turn.
  for (const SharedCase& its :
       {SharedCase{90, 5, 1, 128}, SharedCase{201, 5, 10, 128},
        SharedCase{500, 12, 64, 512}, SharedCase{701, 40, 300, 1024},
        SharedCase{1300, 60, 1024, 4096}, SharedCase{2700, 4096, 600, 8192},
        SharedCase{1500, 9, 1024, 8192}})
    pairs += wrong_shared(its, random);
  std::printf("pairs of two lists: %lld wrong\n",
              static_cast<long long>(pairs));
  return cuts + orders + pairs == 0 ? 0 : 1;
}
