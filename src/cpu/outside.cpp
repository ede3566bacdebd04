#include "cpu/outside.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/errors.hpp"
#include "core/pieces.hpp"
#include "cpu/turns.hpp"

namespace fsknn {
namespace cpu {

ExactPoints::ExactPoints(const Request& request, const RowSource& source,
                         Progress* progress)
    : ExactPoints(request, source,
                  common_exponent(request, source, nullptr,
                                  request.num_threads),
                  progress) {}

ExactPoints::ExactPoints(const Request& request, const RowSource& source,
                         int exponent, Progress* progress)
    : kernels(choose_kernels(request.instruction_set)),
      metric(*request.metric),
      rule(metric, exponent),
      points(prepare_points(source, recipe_of(request, exponent),
                            request.skip, true,
                            kernels.prepare_row, request.num_threads,
                            progress)) {}

bool ExactPoints::is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
                          const std::vector<std::int32_t>& members) const {
  constexpr std::size_t kAtOnce = 64;
  Pair pairs[kAtOnce];
  double sums[kAtOnce];
  std::int64_t nearer = 0;
  for (std::size_t first = 0; first < members.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, members.size() - first);
    for (std::size_t m = 0; m < count; ++m)
      pairs[m] = {place(i), place(members[first + m])};
    exact_in_turns(kernels, metric.accumulation, points.rows.data(),
                   points.rows.data(), points.padded, pairs,
                   static_cast<std::int64_t>(count), sums);
    for (std::size_t m = 0; m < count; ++m) {
      const std::int32_t j = members[first + m];
      if (j == i) continue;
      const double distance = rule(sums[m], points.sums[pairs[m].row],
                                   points.sums[pairs[m].column]);
      nearer += shorter(edge_between(distance, i, j), edge);
    }
    if (nearer >= k) return false;
  }
  return true;
}

double ExactPoints::correlation(const TreeEdge& edge) const {
  const Pair pair = {place(edge.low), place(edge.high)};
  double sum = 0.0;
  kernels.exact(Accumulation::dot, points.rows.data(), points.rows.data(),
                points.padded, &pair, 1, &sum);
  return clamp_to_one(sum);
}

namespace {

Plan plan_for(const ExactPoints& exact, const Request& request) {
  PlanInput input = plan_input(request, exact.points.size(),
                               exact.points.num_features, 0);
  input.k = 1;
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

/// For each point the one of lowest number whose prepared row has the same
/// bits: itself, for most.
std::vector<std::int32_t> twins_of(const PreparedPoints& points) {
  const std::vector<std::int32_t>& id = points.order.id;
  std::vector<std::int32_t> twin(points.order.place.size());
  std::iota(twin.begin(), twin.end(), 0);
  std::vector<std::uint64_t> hash(id.size());
  std::vector<std::int32_t> places(id.size());
  std::iota(places.begin(), places.end(), 0);
  for (std::size_t p = 0; p < id.size(); ++p) {
    hash[p] = hash_of(points.row(static_cast<std::int64_t>(p)), points.padded);
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
    else if (std::memcmp(points.row(p), points.row(q),
                         static_cast<std::size_t>(points.padded) * 8) == 0)
      twin[at(id[at(q)])] = id[at(p)];
    poll_after(5.0);
  }
  return twin;
}

/// Packed rows in another order: what stands at place_at[p] comes to p. What is
/// beyond it counts as padding.
FilterRows reordered(const FilterRows& from,
                     const std::vector<std::int32_t>& place_at,
                     int num_threads) {
  FilterRows to;
  to.num_places = from.num_places;
  to.steps = from.steps;
  to.error = from.error;
  to.panels = Buffer<std::int32_t>(from.panels.size());
  for (Buffer<std::int32_t>* side : {&to.first, &to.second})
    *side = Buffer<std::int32_t>(from.num_places);
  run_pieces(from.num_places / Tile::panel, num_threads, {nullptr, 0.0, 0.0},
             [&] {
               return [&](std::int64_t panel) {
                 for (int c = 0; c < Tile::panel; ++c) {
                   const std::int64_t p = panel * Tile::panel + c;
                   const std::int64_t q =
                       p < static_cast<std::int64_t>(place_at.size())
                           ? place_at[static_cast<std::size_t>(p)]
                           : p;
                   std::int32_t* out =
                       to.panels.data() + panel * Tile::panel * to.steps + c;
                   const std::int32_t* in = from.row(q);
                   for (std::int64_t f = 0; f < to.steps; ++f)
                     out[f * Tile::panel] = in[f * Tile::panel];
                   to.first[p] = from.first[q];
                   to.second[p] = from.second[q];
                 }
               };
             });
  return to;
}

/// One pass. Points stand in the order (searched first, component): chunks
/// without a point to search, and chunks within a component, are passed over.
/// A point that has a twin of lower number in its component is left out: the
/// twin's edges are as long, and come first.
class Pass {
 public:
  Pass(const ExactPoints& exact, const Plan& plan, const FilterScale& scale,
       const Thresholds& thresholds, const FilterRows& packed,
       const std::vector<std::int32_t>& twin,
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
    std::stable_sort(place_at_.begin(), place_at_.end(),
                     [&](std::int32_t p, std::int32_t q) {
                       const std::size_t i = number(p), j = number(q);
                       return search[i] != search[j]
                                  ? search[i] > search[j]
                                  : component[i] < component[j];
                     });
    for (std::size_t p = 0; p < place_at_.size(); ++p) {
      const std::size_t i = number(place_at_[p]);
      component_[p] = component[i];
      searched_[p] = search[i];
      if (search[i]) is_sought_[static_cast<std::size_t>(component[i])] = 1;
    }
    for (std::size_t c = 0; c < best.size(); ++c) set_threshold(c);
    rows_ = reordered(packed, place_at_, num_threads);
  }

  void run(int num_threads, Stretch stretch) {
    const CirculantSchedule schedule(
        (size_ + plan_.chunk_size - 1) / plan_.chunk_size, 1);
    run_pieces(schedule.num_pieces(), num_threads, stretch, [&] {
      return [&, w = Worker(*this)](std::int64_t at) mutable {
        const CirculantSchedule::Piece piece = schedule.piece(at);
        const std::int64_t column = schedule.column(piece.row,
                                                    piece.first_round);
        if (column >= 0) w.chunk(piece.row, column);
      };
    });
  }

 private:
  void set_threshold(std::size_t c) {
    threshold_[c].store(thresholds_.keep_up_to(best_[c].distance),
                        std::memory_order_relaxed);
  }

  /// Whether the component's shortest edge changed.
  bool offer(std::size_t c, const TreeEdge& edge) {
    const std::lock_guard<std::mutex> held(lock_[c]);
    if (!shorter(edge, best_[c])) return false;
    best_[c] = edge;
    set_threshold(c);
    return true;
  }

  bool has_work(std::int64_t row0, std::int64_t row1, std::int64_t column0,
                std::int64_t column1) const {
    const auto at = [](std::int64_t p) { return static_cast<std::size_t>(p); };
    // Those to search stand first.
    if (!searched_[at(row0)] && !searched_[at(column0)]) return false;
    const std::int32_t c = component_[at(row0)];
    for (std::int64_t p = row0; p < row1; ++p)
      if (component_[at(p)] != c) return true;
    for (std::int64_t p = column0; p < column1; ++p)
      if (component_[at(p)] != c) return true;
    return false;
  }

  class Worker {
   public:
    explicit Worker(Pass& pass)
        : s_(&pass),
          row_threshold_(pass.plan_.chunk_size),
          column_threshold_(pass.plan_.chunk_size) {
      hits_.reserve(kHits + Tile::rows * Tile::columns);
      pairs_.resize(kHits + Tile::rows * Tile::columns);
      sums_.resize(kHits + Tile::rows * Tile::columns);
    }

    void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
      const std::int64_t size = s_->plan_.chunk_size;
      row0_ = row_chunk * size;
      column0_ = column_chunk * size;
      num_rows_ = std::min(size, s_->size_ - row0_);
      num_columns_ = std::min(size, s_->size_ - column0_);
      if (num_rows_ <= 0 || num_columns_ <= 0) return;
      if (!s_->has_work(row0_, row0_ + num_rows_, column0_,
                        column0_ + num_columns_))
        return;
      const bool diagonal = row_chunk == column_chunk;
      copy_thresholds();
      for (std::int64_t c = 0; c < num_columns_; c += Tile::columns) {
        const int panels = static_cast<int>(
            (std::min<std::int64_t>(Tile::columns, num_columns_ - c) +
             Tile::panel - 1) /
            Tile::panel);
        for (std::int64_t r = 0; r < num_rows_; r += Tile::rows) {
          if (diagonal && r >= c + Tile::columns) break;
          tile(r, c, panels, diagonal);
          if (hits_.size() >= kHits) settle();
          poll_after(tile_cost(s_->rows_.steps));
        }
      }
      settle();
    }

   private:
    // Few: the first hits of a component bring its threshold down.
    static constexpr std::size_t kHits = 256;

    void copy_thresholds() {
      const auto copy = [&](std::int64_t from, std::int64_t count,
                            Buffer<std::int32_t>& to) {
        std::fill_n(to.data(), to.size(), s_->thresholds_.keep_none());
        for (std::int64_t p = 0; p < count; ++p) {
          const std::size_t at = static_cast<std::size_t>(from + p);
          if (s_->searched_[at])
            to[p] = s_->threshold_[static_cast<std::size_t>(
                                       s_->component_[at])]
                        .load(std::memory_order_relaxed);
        }
      };
      copy(row0_, num_rows_, row_threshold_);
      copy(column0_, num_columns_, column_threshold_);
    }

    void tile(std::int64_t r, std::int64_t c, int panels, bool diagonal) {
      const FilterRows& rows = s_->rows_;
      const Kernels& kernels = s_->exact_.kernels;
      const std::int64_t row = row0_ + r, column = column0_ + c;
      kernels.accumulate(s_->scale_.product, rows.row(row),
                         rows.panel(column), panels, rows.steps, tile_);
      std::uint64_t keep[Tile::rows];
      kernels.test(s_->scale_.test, tile_, panels,
                   rows.side(row_threshold_.data() + r, row),
                   rows.side(column_threshold_.data() + c, column), keep);
      for (int q = 0; q < Tile::rows; ++q) {
        for (std::uint64_t mask = keep[q]; mask != 0; mask &= mask - 1) {
          const std::int64_t a = row + q;
          const std::int64_t b = column + __builtin_ctzll(mask);
          if (a >= s_->size_ || b >= s_->size_ || (diagonal && a >= b) ||
              s_->component_[static_cast<std::size_t>(a)] ==
                  s_->component_[static_cast<std::size_t>(b)])
            continue;
          hits_.push_back({static_cast<std::int32_t>(a),
                           static_cast<std::int32_t>(b)});
        }
      }
    }

    void settle() {
      if (hits_.empty()) return;
      const ExactPoints& exact = s_->exact_;
      const PreparedPoints& points = exact.points;
      for (std::size_t h = 0; h < hits_.size(); ++h)
        pairs_[h] = {s_->place_at_[static_cast<std::size_t>(hits_[h].row)],
                     s_->place_at_[static_cast<std::size_t>(hits_[h].column)]};
      exact_in_turns(exact.kernels, exact.metric.accumulation,
                     points.rows.data(), points.rows.data(), points.padded,
                     pairs_.data(), static_cast<std::int64_t>(hits_.size()),
                     sums_.data());
      bool changed = false;
      for (std::size_t h = 0; h < hits_.size(); ++h) {
        const Pair pair = pairs_[h];
        const TreeEdge edge = edge_between(
            exact.rule(sums_[h], points.sums[pair.row],
                       points.sums[pair.column]),
            points.order.id[static_cast<std::size_t>(pair.row)],
            points.order.id[static_cast<std::size_t>(pair.column)]);
        for (const std::int32_t p : {hits_[h].row, hits_[h].column}) {
          const std::size_t c = static_cast<std::size_t>(
              s_->component_[static_cast<std::size_t>(p)]);
          if (s_->is_sought_[c] && s_->offer(c, edge)) changed = true;
        }
      }
      hits_.clear();
      if (changed) copy_thresholds();
    }

    Pass* s_;
    std::int64_t row0_ = 0, column0_ = 0, num_rows_ = 0, num_columns_ = 0;
    Buffer<std::int32_t> row_threshold_, column_threshold_;
    std::vector<Pair> hits_;   ///< in this pass's order
    std::vector<Pair> pairs_;  ///< the same, as places
    std::vector<double> sums_;
    alignas(64) std::int32_t tile_[Tile::rows * Tile::columns];
  };

  const ExactPoints& exact_;
  const Plan& plan_;
  const FilterScale& scale_;
  const Thresholds& thresholds_;
  std::vector<TreeEdge>& best_;
  std::int64_t size_ = 0;
  std::vector<std::int32_t> place_at_, component_;
  std::vector<char> searched_;
  std::vector<char> is_sought_;  ///< [components]
  std::unique_ptr<std::atomic<std::int32_t>[]> threshold_;
  std::unique_ptr<std::mutex[]> lock_;
  FilterRows rows_;
};

}  // namespace

OutsideSearch::OutsideSearch(const ExactPoints& exact, const Request& request,
                             Progress* progress)
    : exact_(exact),
      num_threads_(request.num_threads),
      progress_(progress),
      plan_(plan_for(exact, request)),
      scale_(choose_scale(exact.metric, exact.rule, exact.kernels,
                          exact.points, nullptr, num_threads_)),
      thresholds_(scale_, exact.metric, exact.rule) {}

void OutsideSearch::lower(const std::vector<std::int32_t>& component,
                          const std::vector<char>& search,
                          std::vector<TreeEdge>& best) {
  if (passes_ == 0) {
    rows_ = pack(scale_, exact_.points, plan_.padded_points, num_threads_,
                 progress_);
    set_bounds(scale_, rows_, rows_, exact_.points.padded);
    twin_ = twins_of(exact_.points);
  }
  // How many passes there will be is not known: half of the rest each.
  const double from = 1.0 - std::ldexp(1.0, -passes_);
  ++passes_;
  Pass pass(exact_, plan_, scale_, thresholds_, rows_, twin_, component, search,
            best, num_threads_);
  pass.run(num_threads_, {progress_, from, 1.0 - std::ldexp(1.0, -passes_)});
}

}  // namespace cpu
}  // namespace fsknn
