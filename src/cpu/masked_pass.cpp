#include "cpu/masked_pass.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/masked.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr float kKeepAll = -std::numeric_limits<float>::infinity();
constexpr float kKeepNone = std::numeric_limits<float>::infinity();

int threads_of(const Request& asked, const RowSource& points,
               const RowSource* queries) {
  const RowSource& rows = queries != nullptr ? *queries : points;
  return useful_threads(asked.num_threads,
                        static_cast<double>(rows.num_points()) *
                            static_cast<double>(points.num_points()) *
                            static_cast<double>(points.num_features()) / 16);
}

}  // namespace

MaskedWork::MaskedWork(const Request& asked, const RowSource& points,
                       const RowSource* queries, Progress* progress)
    : request(asked),
      kernels(choose_kernels(asked.instruction_set)),
      symmetric(queries == nullptr) {
  request.num_threads = threads_of(asked, points, queries);
  const RowForm form = asked.metric->row_form;
  columns = prepare_masked(points, form, request.skip, true,
                           request.num_threads, progress);
  if (!symmetric)
    own_rows = prepare_masked(*queries, form, request.query_skip, false,
                              request.num_threads, progress);
}

Plan MaskedWork::plan() const {
  PlanInput input = plan_input(request, columns.size(), columns.num_features,
                               symmetric ? 0 : own_rows.size());
  input.k = std::max<std::int64_t>(1, request.k);
  return plan_cpu(input);
}

class MaskedPass::Worker {
 public:
  Worker(MaskedPass& pass, std::unique_ptr<Taker> taker)
      : s_(&pass), taker_(std::move(taker)) {
    hits_.reserve(kHits);
    r_.resize(hits_.capacity());
    row_threshold_.resize(static_cast<std::size_t>(s_->plan_.chunk_size));
    column_threshold_.resize(row_threshold_.size());
  }
  Worker(Worker&& other) noexcept
      : s_(std::exchange(other.s_, nullptr)),
        taker_(std::move(other.taker_)),
        row_threshold_(std::move(other.row_threshold_)),
        column_threshold_(std::move(other.column_threshold_)),
        hits_(std::move(other.hits_)),
        r_(std::move(other.r_)) {}
  ~Worker() {
    if (s_ == nullptr) return;
#pragma omp critical(fsknn_counts)
    {
      s_->pairs_filtered_ += pairs_filtered_;
      s_->pairs_exact_ += pairs_exact_;
    }
  }

  /// All pairs of a chunk: filter, exact, select.
  void chunk(std::int64_t row_chunk, std::int64_t column_chunk) {
    const std::int64_t size = s_->plan_.chunk_size;
    row0_ = row_chunk * size;
    column0_ = column_chunk * size;
    num_rows_ = std::min(size, s_->work_.rows().size() - row0_);
    num_columns_ = std::min(size, s_->work_.columns.size() - column0_);
    if (num_rows_ <= 0 || num_columns_ <= 0) return;
    diagonal_ = s_->work_.symmetric && row_chunk == column_chunk;
    copy_thresholds(row0_, num_rows_, row_threshold_);
    if (s_->work_.symmetric)
      copy_thresholds(column0_, num_columns_, column_threshold_);
    else
      std::fill(column_threshold_.begin(), column_threshold_.end(),
                kKeepNone);
    if (s_->filtered_)
      filter();
    else
      take_all();
    settle();
  }

 private:
  static constexpr std::size_t kHits = 2048;

  void copy_thresholds(std::int64_t place0, std::int64_t count,
                       std::vector<float>& to) {
    std::fill(to.begin(), to.end(), kKeepNone);
    for (std::int64_t p = 0; p < count; ++p)
      to[static_cast<std::size_t>(p)] = s_->threshold(place0 + p);
  }

  void take_all() {
    for (std::int64_t r = 0; r < num_rows_; ++r)
      for (std::int64_t c = diagonal_ ? r + 1 : 0; c < num_columns_; ++c)
        take(r, c);
  }

  void take(std::int64_t row, std::int64_t column) {
    hits_.push_back({static_cast<std::int32_t>(row),
                     static_cast<std::int32_t>(column)});
    if (hits_.size() >= kHits) settle();
  }

  void filter() {
    const MaskedFilterRows& a = s_->row_filter();
    const MaskedFilterRows& b = s_->column_filter_;
    for (std::int64_t c = 0; c < num_columns_; c += Tile::columns) {
      const int panels = static_cast<int>(
          (std::min<std::int64_t>(Tile::columns, num_columns_ - c) +
           Tile::panel - 1) / Tile::panel);
      for (std::int64_t r = 0; r < num_rows_; r += CommonTile::rows) {
        // Below the diagonal: met from the other side.
        if (diagonal_ && r >= c + Tile::columns) break;
        for (int half = 0; half < CommonTile::rows; half += Tile::rows)
          s_->work_.kernels.accumulate(
              Product::dot, a.row(row0_ + r + half), b.panel(column0_ + c),
              panels, a.steps, tile_ + half * Tile::columns);
        if (test(r, c, panels)) refine(r, c, panels);
      }
    }
    pairs_filtered_ += static_cast<double>(num_rows_) *
                       static_cast<double>(num_columns_) *
                       (diagonal_ ? 0.5 : 1.0);
  }

  /// Step 1 of a tile of 16 rows, to keep_; whether any pair is left.
  bool test(std::int64_t row, std::int64_t column, int panels) {
    const MaskedFilterRows& a = s_->row_filter();
    const MaskedFilterRows& b = s_->column_filter_;
    const std::int64_t i0 = row0_ + row, j0 = column0_ + column;
    const std::int64_t row_class = a.panel_class[i0 / Tile::panel];
    std::int64_t column_class = 0;
    for (int p = 0; p < panels; ++p)
      column_class = std::max<std::int64_t>(
          column_class, b.panel_class[j0 / Tile::panel + p]);
    const std::int64_t at = row_class * b.num_places + j0;
    const MaskedSide columns = {
        column_threshold_.data() + static_cast<std::size_t>(column),
        b.error.data() + j0, b.alpha.data() + at, b.w.data() + at};
    const float unit = static_cast<float>(masked_unit());
    std::uint64_t any = 0;
    for (int r = 0; r < CommonTile::rows; ++r) {
      keep_[r] = 0;
      if (row + r >= num_rows_) continue;
      const std::int64_t own = column_class * a.num_places + i0 + r;
      const MaskedSide side = {
          row_threshold_.data() + static_cast<std::size_t>(row + r),
          a.error.data() + i0 + r, a.alpha.data() + own, a.w.data() + own};
      keep_[r] = s_->work_.kernels.masked_test(
          s_->work_.request.metric->sign, tile_ + r * Tile::columns, panels,
          unit, side, columns);
      any |= keep_[r];
    }
    return any != 0;
  }

  /// Step 2 of a tile.
  void refine(std::int64_t row, std::int64_t column, int panels) {
    const MaskedFilterRows& a = s_->row_filter();
    const MaskedFilterRows& b = s_->column_filter_;
    const std::int64_t i0 = row0_ + row, j0 = column0_ + column;
    const std::int64_t width = num_columns_ - column;
    const std::uint64_t there =
        width < 64 ? (std::uint64_t{1} << width) - 1 : ~std::uint64_t{0};
    std::uint64_t columns_kept = 0;
    for (int r = 0; r < CommonTile::rows; ++r) {
      keep_[r] &= there;
      columns_kept |= keep_[r];
      if (keep_[r] != 0)
        sum_of_columns(s_->work_.kernels, a, i0 + r, b, j0, panels,
                       common_.b[r], common_.y[r]);
    }
    for (; columns_kept != 0; columns_kept &= columns_kept - 1) {
      const int c = __builtin_ctzll(columns_kept);
      sum_of_rows(s_->work_.kernels, a, i0, b, j0 + c, common_.a[c],
                  common_.x[c]);
    }
    for (int r = 0; r < CommonTile::rows; ++r)
      for (std::uint64_t mask = keep_[r]; mask != 0; mask &= mask - 1) {
        const int c = __builtin_ctzll(mask);
        if (!(diagonal_ && row + r >= column + c))
          refine_pair(row + r, column + c, r, c);
      }
  }

  void refine_pair(std::int64_t row, std::int64_t column, int r, int c) {
    const float t = std::min(row_threshold_[static_cast<std::size_t>(row)],
                             column_threshold_[static_cast<std::size_t>(
                                 column)]);
    const MaskedPair pair = {
        row0_ + row,     column0_ + column, tile_[r * Tile::columns + c],
        common_.a[c][r], common_.x[c][r],   common_.b[r][c],
        common_.y[r][c]};
    const Request& request = s_->work_.request;
    if (may_be_near(s_->row_filter(), s_->column_filter_, pair,
                    request.metric->sign, request.min_pairs, t))
      take(row, column);
  }

  /// The r of the hits so far, where they have one, to who takes them.
  void settle() {
    if (hits_.empty()) return;
    const MaskedPoints& rows = s_->work_.rows();
    const MaskedPoints& columns = s_->work_.columns;
    const Request& request = s_->work_.request;
    s_->work_.kernels.masked(rows.row(row0_), columns.row(column0_),
                             columns.padded,
                             static_cast<double>(request.min_pairs),
                             hits_.data(),
                             static_cast<std::int64_t>(hits_.size()),
                             r_.data());
    for (std::size_t h = 0; h < hits_.size(); ++h) {
      if (!has_value(r_[h])) continue;
      const Pair& hit = hits_[h];
      taker_->take(row0_ + hit.row, column0_ + hit.column, r_[h]);
      // It may have become stricter.
      row_threshold_[static_cast<std::size_t>(hit.row)] =
          s_->threshold(row0_ + hit.row);
      if (s_->work_.symmetric)
        column_threshold_[static_cast<std::size_t>(hit.column)] =
            s_->threshold(column0_ + hit.column);
    }
    pairs_exact_ += static_cast<double>(hits_.size());
    hits_.clear();
  }

  MaskedPass* s_;
  std::unique_ptr<Taker> taker_;
  std::vector<float> row_threshold_, column_threshold_;
  std::vector<Pair> hits_;
  std::vector<double> r_;
  alignas(64) std::int32_t tile_[CommonTile::rows * Tile::columns];
  alignas(64) CommonTile common_;
  std::uint64_t keep_[CommonTile::rows];  ///< bit c: column c of the tile
  std::int64_t row0_ = 0, column0_ = 0, num_rows_ = 0, num_columns_ = 0;
  bool diagonal_ = false;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
};

MaskedPass::MaskedPass(const MaskedWork& work, const Plan& plan, bool filtered,
                       Progress* progress)
    : work_(work),
      plan_(plan),
      filtered_(filtered),
      threshold_(new std::atomic<float>[static_cast<std::size_t>(
          plan.padded_queries)]) {
  const MaskedPoints& rows = work.rows();
  const Request& request = work.request;
  for (std::int64_t p = 0; p < plan.padded_queries; ++p)
    threshold_[static_cast<std::size_t>(p)].store(
        p < rows.size() ? kKeepAll : kKeepNone, std::memory_order_relaxed);
  if (!filtered) return;
  const MissingClasses classes =
      missing_classes(work.columns, work.symmetric ? nullptr : &rows);
  column_filter_ = pack_masked(work.columns, classes, plan.padded_points,
                               request.min_pairs, request.num_threads,
                               progress);
  if (!work.symmetric)
    row_filter_ = pack_masked(rows, classes, plan.padded_queries,
                              request.min_pairs, request.num_threads, progress);
}

void MaskedPass::run(const Stretch& stretch, const MakeTaker& make_taker) {
  const auto go = [&](std::int64_t num_pieces, auto chunks_of) {
    run_pieces(num_pieces, work_.request.num_threads, stretch, [&] {
      return [&, w = Worker(*this, make_taker())](std::int64_t at) mutable {
        chunks_of(w, at);
      };
    });
  };
  if (!work_.symmetric) {
    go(plan_.num_splits * plan_.chunks_per_split,
       [&](Worker& w, std::int64_t at) {
         w.chunk(at / plan_.chunks_per_split, at % plan_.chunks_per_split);
       });
    return;
  }
  const CirculantSchedule schedule(plan_.num_splits, 1);
  go(schedule.num_pieces(), [&](Worker& w, std::int64_t at) {
    const CirculantSchedule::Piece piece = schedule.piece(at);
    const std::int64_t column = schedule.column(piece.row, piece.first_round);
    if (column >= 0) w.chunk(piece.row, column);
  });
}

}  // namespace cpu
}  // namespace fsknn
