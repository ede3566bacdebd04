#include "cpu/search/outside.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/search/exact_rows.hpp"
#include "cpu/search/keys_pay.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/prepared_pairs.hpp"
#include "cpu/search/tree.hpp"

namespace fsknn {
namespace cpu {

ExactPoints::ExactPoints(const Request& request, const RowSource& source,
                         Progress* progress)
    : ExactPoints(suited(request, source, nullptr, progress), source, progress,
                  Suited()) {}

ExactPoints::ExactPoints(const Request& request, const RowSource& source,
                         Progress* progress, Suited)
    : ExactPoints(
          request, source,
          common_exponent(request, source, nullptr, request.num_threads),
          progress) {}

ExactPoints::ExactPoints(const Request& request, const RowSource& source,
                         int exponent, Progress* progress)
    : kernels(choose_kernels(request.instruction_set)),
      metric(*request.metric),
      rule(metric, exponent),
      points(prepare_points(source, recipe_of(request, exponent), request.skip,
                            true, kernels.prepare_row, request.num_threads,
                            progress, !source.made_when_read())) {}

bool ExactPoints::is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
                          const std::vector<std::int32_t>& members) const {
  constexpr std::int64_t kAtOnce = 64;
  RowSums sums_of(kernels, metric.accumulation, points, points);
  const std::int64_t size = static_cast<std::int64_t>(members.size());
  std::int64_t nearer = 0;
  for (std::int64_t first = 0; first < size; first += kAtOnce) {
    const auto member = [&](std::int64_t m) {
      return members[static_cast<std::size_t>(first + m)];
    };
    const std::int64_t count = std::min(kAtOnce, size - first);
    const double* sums = sums_of(
        place(i), count, [&](std::int64_t m) { return place(member(m)); });
    for (std::int64_t m = 0; m < count; ++m) {
      const std::int32_t j = member(m);
      if (j == i) continue;
      const double distance = rule(sums[m], points.sums[place(i).value],
                                   points.sums[place(j).value]);
      nearer += shorter(edge_between(distance, i, j), edge);
    }
    if (nearer >= k) return false;
  }
  return true;
}

double ExactPoints::correlation(const TreeEdge& edge) const {
  RowSums sums_of(kernels, Accumulation::dot, points, points);
  const Place low = place(edge.low), high = place(edge.high);
  const double sum = sums_of(low, 1, [&](std::int64_t) { return high; })[0];
  return rule.correlation(sum, points.sums[low.value], points.sums[high.value]);
}

namespace {

Plan plan_for(const ExactPoints& exact, const Request& request, bool boxes) {
  PlanInput input =
      plan_input(request, exact.points.size(), exact.points.num_features, 0);
  input.k = 1;
  input.rows_made = !exact.points.held();
  if (boxes) input.most_chunks = kMostListed;
  return plan_cpu(input);
}

std::uint64_t hash_of(const double* row, std::int64_t size) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, a word at a time
  for (std::int64_t f = 0; f < size; ++f) {
    std::uint64_t word;
    std::memcpy(&word, row + f, sizeof word);
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Finds for each point the lowest-numbered point whose prepared row has the
/// same bits. For most points this is the point itself.
std::vector<std::int32_t> twins_of(const PreparedPoints& points) {
  const std::vector<std::int32_t>& id = points.order.id;
  std::vector<std::int32_t> twin(points.order.place.size());
  std::iota(twin.begin(), twin.end(), 0);
  std::vector<std::uint64_t> hash(id.size());
  std::vector<std::int32_t> places(id.size());
  std::iota(places.begin(), places.end(), 0);
  RowReader row(points), other(points);
  for (std::size_t p = 0; p < id.size(); ++p) {
    hash[p] = hash_of(row(Place{static_cast<std::int64_t>(p)}), points.padded);
    poll_after(2.0 * static_cast<double>(points.padded));
  }
  const auto at = [](std::int32_t p) { return static_cast<std::size_t>(p); };
  std::sort(places.begin(), places.end(), [&](std::int32_t p, std::int32_t q) {
    return hash[at(p)] != hash[at(q)] ? hash[at(p)] < hash[at(q)]
                                      : id[at(p)] < id[at(q)];
  });
  std::size_t first = 0;
  for (std::size_t s = 1; s < places.size(); ++s) {
    const std::int32_t p = places[first], q = places[s];
    if (hash[at(p)] != hash[at(q)])
      first = s;
    else if (std::memcmp(row(Place{p}), other(Place{q}),
                         static_cast<std::size_t>(points.padded) * 8) == 0)
      twin[at(id[at(q)])] = id[at(p)];
    poll_after(5.0);
  }
  return twin;
}

/// One pass. Points are in the order (searched first, component). Chunks
/// without a searched point, and chunks within one component, are skipped. A
/// point with a twin of lower number in its component is omitted: the twin's
/// edges have the same length and sort first.
///
/// With boxes, points are in the order of a tree within their component, and
/// components in that of their first points. Tiles within one component, and
/// tiles farther from each other than the shortest edges so far, are pruned.
class Pass {
 public:
  Pass(const ExactPoints& exact, const Plan& plan, const FilterScale& scale,
       const Thresholds& thresholds, const FilterRows& packed,
       const std::vector<std::int32_t>& twin,
       const std::vector<std::int32_t>& rank,
       const std::vector<std::int32_t>& component,
       const std::vector<char>& search, std::vector<TreeEdge>& best,
       int num_threads)
      : exact_(exact),
        plan_(plan),
        scale_(scale),
        thresholds_(thresholds),
        best_(best),
        is_sought_(best.size(), 0),
        threshold_(new std::atomic<std::int32_t>[best.size()]),
        lock_(new std::mutex[best.size()]) {
    const std::vector<std::int32_t>& id = exact.points.order.id;
    const auto number = [&](std::int32_t place) {
      return static_cast<std::size_t>(id[static_cast<std::size_t>(place)]);
    };
    for (std::int32_t p = 0; p < exact.points.size(); ++p) {
      const std::size_t i = number(p);
      const std::int32_t first = twin[i];
      if (first == id[static_cast<std::size_t>(p)] ||
          component[static_cast<std::size_t>(first)] != component[i])
        place_at_.push_back(p);
    }
    size_ = static_cast<std::int64_t>(place_at_.size());
    component_.resize(place_at_.size());
    searched_.resize(place_at_.size());
    if (rank.empty())
      std::stable_sort(place_at_.begin(), place_at_.end(),
                       [&](std::int32_t p, std::int32_t q) {
                         const std::size_t i = number(p), j = number(q);
                         return search[i] != search[j]
                                    ? search[i] > search[j]
                                    : component[i] < component[j];
                       });
    else
      sort_by_ranks(rank, [&](std::int32_t p) {
        return static_cast<std::size_t>(component[number(p)]);
      });
    for (std::size_t p = 0; p < place_at_.size(); ++p) {
      const std::size_t i = number(place_at_[p]);
      component_[p] = component[i];
      searched_[p] = search[i];
      if (p % static_cast<std::size_t>(plan.chunk_size) == 0)
        has_searched_.push_back(0);
      has_searched_.back() |= search[i];
      if (search[i]) is_sought_[static_cast<std::size_t>(component[i])] = 1;
    }
    for (std::size_t c = 0; c < best.size(); ++c) set_threshold(c);
    rows_ = reordered(packed, place_at_, num_threads);
    block_.points = &exact.points;
    block_.filter = &rows_;
    block_.place_at = &place_at_;
    if (!rank.empty()) span_tiles(num_threads);
  }

  PassCounts run(int num_threads, ProgressRange progress_range) {
    const auto make_pass = [&] {
      return ChunkPass<PreparedPairs, Sink>(
          plan_.chunk_size, true,
          [&] {
            return PreparedPairs(exact_.kernels, exact_.metric.accumulation,
                                 scale_, block_, block_, plan_.chunk_size);
          },
          [&] { return Sink(*this); });
    };
    if (spans_ == nullptr) {
      const std::int64_t chunks =
          (size_ + plan_.chunk_size - 1) / plan_.chunk_size;
      return run_pass({chunks, chunks, true}, num_threads, progress_range,
                      make_pass);
    }
    const std::vector<ChunkPair> near =
        near_chunks(*spans_, *spans_, true, num_threads);
    PassCounts counts;
    run_pieces(
        static_cast<std::int64_t>(near.size()), num_threads, progress_range,
        make_pass,
        [&](auto& pass, std::int64_t at) {
          const ChunkPair& pair = near[static_cast<std::size_t>(at)];
          pass.chunk(pair.row, pair.column);
        },
        [&](auto& pass) { counts.add(pass.counts()); });
    return counts;
  }

 private:
  /// rank: [places]; component_of(place).
  template <class ComponentOf>
  void sort_by_ranks(const std::vector<std::int32_t>& rank,
                     ComponentOf component_of) {
    const auto rank_of = [&](std::int32_t p) {
      return rank[static_cast<std::size_t>(p)];
    };
    std::vector<std::int32_t> first(best_.size(),
                                    static_cast<std::int32_t>(rank.size()));
    for (const std::int32_t p : place_at_) {
      std::int32_t& own = first[component_of(p)];
      own = std::min(own, rank_of(p));
    }
    std::sort(place_at_.begin(), place_at_.end(),
              [&](std::int32_t p, std::int32_t q) {
                const std::int32_t i = first[component_of(p)];
                const std::int32_t j = first[component_of(q)];
                return i != j ? i < j : rank_of(p) < rank_of(q);
              });
  }

  void span_tiles(int num_threads) {
    tiles_ =
        KeyTiles(exact_.metric, scale_, exact_.points, &place_at_, num_threads);
    labels_.reset(new TileLabels(component_));
    spans_.reset(new ChunkSpans(tiles_, size_, plan_.chunk_size));
    block_.spans = spans_.get();
    block_.labels = labels_.get();
    Buffer<std::int32_t> threshold(plan_.chunk_size);
    for (std::int64_t c = 0; c < spans_->size(); ++c) {
      const std::int64_t count = spans_->num_points(c);
      copy_thresholds(c * plan_.chunk_size, count, threshold.data());
      spans_->set_limit(c, limit_of(tiles_, scale_, threshold.data(), count));
    }
  }

  /// The thresholds of some points; beyond them, and of points that are not
  /// searched, the one that keeps no pair. to: [chunk_size]
  void copy_thresholds(std::int64_t from, std::int64_t count,
                       std::int32_t* to) const {
    std::fill_n(to, plan_.chunk_size, thresholds_.keep_none());
    for (std::int64_t p = 0; p < count; ++p) {
      const std::size_t at = static_cast<std::size_t>(from + p);
      if (searched_[at])
        to[p] = threshold_[static_cast<std::size_t>(component_[at])].load(
            std::memory_order_relaxed);
    }
  }

  void set_threshold(std::size_t c) {
    threshold_[c].store(thresholds_.keep_up_to(best_[c].distance),
                        std::memory_order_relaxed);
  }

  /// Returns whether the component's shortest edge changed.
  bool offer(std::size_t c, const TreeEdge& edge) {
    const std::lock_guard<std::mutex> held(lock_[c]);
    if (!shorter(edge, best_[c])) return false;
    best_[c] = edge;
    set_threshold(c);
    return true;
  }

  bool has_work(const Chunk& chunk) const {
    const auto at = [](std::int64_t p) { return static_cast<std::size_t>(p); };
    if (!has_searched_[at(chunk.row0 / plan_.chunk_size)] &&
        !has_searched_[at(chunk.column0 / plan_.chunk_size)])
      return false;
    const std::int32_t c = component_[at(chunk.row0)];
    const auto other_in = [&](std::int64_t from, std::int64_t count) {
      for (std::int64_t p = from; p < from + count; ++p)
        if (component_[at(p)] != c) return true;
      return false;
    };
    return other_in(chunk.row0, chunk.num_rows) ||
           other_in(chunk.column0, chunk.num_columns);
  }

  /// Hits are offered to the components of both points.
  class Sink : public SinkDefaults {
   public:
    // A small batch, because the first hits of a component lower its threshold.
    static constexpr std::size_t kHits = 256;

    explicit Sink(Pass& pass) : s_(pass) {}

    bool enter(const Chunk& at, std::int32_t* row_threshold,
               std::int32_t* column_threshold) {
      if (!s_.has_work(at)) return false;
      at_ = at;
      row_threshold_ = row_threshold;
      column_threshold_ = column_threshold;
      copy_thresholds();
      return true;
    }

    bool wanted(std::int32_t row, std::int32_t column) const {
      return s_.component_[row_of(row)] != s_.component_[column_of(column)];
    }

    void take(const Pair& hit, double sum) {
      const PreparedPoints& points = s_.exact_.points;
      const std::size_t row = row_of(hit.row), column = column_of(hit.column);
      const std::int32_t p = s_.place_at_[row], q = s_.place_at_[column];
      const TreeEdge edge =
          edge_between(s_.exact_.rule(sum, points.sums[p], points.sums[q]),
                       points.order.id[static_cast<std::size_t>(p)],
                       points.order.id[static_cast<std::size_t>(q)]);
      for (const std::size_t at : {row, column}) {
        const std::size_t c = static_cast<std::size_t>(s_.component_[at]);
        if (s_.is_sought_[c] && s_.offer(c, edge)) changed_ = true;
      }
    }

    void reranked() {
      if (changed_) copy_thresholds();
      changed_ = false;
    }

   private:
    std::size_t row_of(std::int32_t row) const {
      return static_cast<std::size_t>(at_.row0 + row);
    }
    std::size_t column_of(std::int32_t column) const {
      return static_cast<std::size_t>(at_.column0 + column);
    }

    void copy_thresholds() {
      s_.copy_thresholds(at_.row0, at_.num_rows, row_threshold_);
      s_.copy_thresholds(at_.column0, at_.num_columns, column_threshold_);
    }

    Pass& s_;
    Chunk at_ = {};
    std::int32_t* row_threshold_ = nullptr;
    std::int32_t* column_threshold_ = nullptr;
    bool changed_ = false;
  };

  const ExactPoints& exact_;
  const Plan& plan_;
  const FilterScale& scale_;
  const Thresholds& thresholds_;
  std::vector<TreeEdge>& best_;
  std::int64_t size_ = 0;
  std::vector<std::int32_t> place_at_, component_;
  std::vector<char> searched_;
  std::vector<char> has_searched_;  ///< [chunks]
  std::vector<char> is_sought_;     ///< [components]
  std::unique_ptr<std::atomic<std::int32_t>[]> threshold_;
  std::unique_ptr<std::mutex[]> lock_;
  FilterRows rows_;
  PointBlock block_;
  KeyTiles tiles_;
  std::unique_ptr<const TileLabels> labels_;
  std::unique_ptr<ChunkSpans> spans_;
};

}  // namespace

OutsideSearch::OutsideSearch(const ExactPoints& exact, const Request& request,
                             Progress* progress)
    : exact_(exact),
      request_(request),
      progress_(progress),
      scale_(choose_scale(exact.metric, exact.rule, exact.kernels, exact.points,
                          nullptr, request.num_threads)),
      thresholds_(scale_, exact.metric, exact.rule) {}

void OutsideSearch::prepare() {
  const PreparedPoints& points = exact_.points;
  const int threads = request_.num_threads;
  rows_ = pack(scale_, points, threads, progress_);
  set_slack(scale_, rows_.error, points.padded);
  complete(scale_, rows_);
  twin_ = twins_of(points);
  // The edges that are searched for are at least as long as those of the lists.
  if (scale_.form->reach != nullptr &&
      boxes_pay(request_, exact_.metric, points, [&] {
        return sampled_rows(exact_.metric, exact_.rule, exact_.kernels, points,
                            nullptr, nullptr,
                            std::max<std::int64_t>(1, request_.k));
      })) {
    const std::vector<std::int32_t> order = tree_order(points, threads);
    rank_.resize(order.size());
    for (std::size_t r = 0; r < order.size(); ++r)
      rank_[static_cast<std::size_t>(order[r])] = static_cast<std::int32_t>(r);
  }
  plan_ = plan_for(exact_, request_, !rank_.empty());
}

void OutsideSearch::lower(const std::vector<std::int32_t>& component,
                          const std::vector<char>& search,
                          std::vector<TreeEdge>& best) {
  if (passes_ == 0) prepare();
  // The number of passes is unknown, so that each reports half of the remaining
  // share.
  const double from = 1.0 - std::ldexp(1.0, -passes_);
  ++passes_;
  const int threads = request_.num_threads;
  Pass pass(exact_, plan_, scale_, thresholds_, rows_, twin_, rank_, component,
            search, best, threads);
  counts_.add(
      pass.run(threads, {progress_, from, 1.0 - std::ldexp(1.0, -passes_)}));
}

}  // namespace cpu
}  // namespace fsknn
