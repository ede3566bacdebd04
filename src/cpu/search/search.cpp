#include "cpu/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "cpu/search/exact_rows.hpp"
#include "cpu/search/search_sink.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {

Search::Search(const Request& request, const Plan& plan, const Kernels& kernels,
               const DistanceRule& rule, const FilterScale& scale,
               bool is_graph, std::int64_t num_places, Progress* progress)
    : request_(request),
      metric_(*request.metric),
      plan_(plan),
      kernels_(kernels),
      rule_(rule),
      scale_(scale),
      is_graph_(is_graph),
      num_places_(num_places),
      progress_(progress),
      thresholds_(scale_, metric_, rule_),
      lists_(num_places * lists_a_row(request), request.k,
             std::max(plan.num_points, plan.num_queries)),
      threshold_(new std::atomic<std::int32_t>[static_cast<std::size_t>(
          num_places * lists_a_row(request))]) {
  for (std::int64_t list = 0; list < num_places * lists_a_row(request); ++list)
    threshold_[list].store(thresholds_.keep_all(), std::memory_order_relaxed);
}

void Search::set_threshold(Place list) {
  threshold_[list.value].store(thresholds_.keep_up_to(lists_.limit(list)),
                               std::memory_order_relaxed);
}

void Search::set_limit(const PointBlock& rows, std::int64_t at, double limit) {
  const Place list = list_of(rows, at, rows);
  lists_.set_limit(list, limit);
  if (limit > -HUGE_VAL) return set_threshold(list);
  threshold_[list.value].store(thresholds_.keep_none(),
                               std::memory_order_relaxed);
}

Search::Found Search::found_of(const PointBlock& rows, std::int64_t at,
                               const PointBlock& columns) {
  const Place list = list_of(rows, at, columns);
  const std::int64_t size = lists_.sort(list);
  return {lists_.distances(list), lists_.indices(list), size};
}

/// A meeting's chunks, in pieces that are numbered consecutively over all
/// meetings.
class Search::Part {
 public:
  using Pass = ChunkPass<PreparedPairs, Sink>;

  Part(const Search& search, const Meeting& meeting, std::int64_t first_piece)
      : rows_(*meeting.rows),
        columns_(*meeting.columns),
        sorted_(meeting.sorted()),
        across_(search.chunks_of(columns_)),
        symmetric_(search.among_themselves(rows_, columns_)),
        schedule_(search.chunks_of(rows_), span(search, meeting)),
        first_piece_(first_piece) {
    std::int64_t pieces =
        symmetric_ ? schedule_.num_pieces() : search.chunks_of(rows_) * across_;
    if (sorted_) {
      list_near(search);
      pieces = static_cast<std::int64_t>(near_.size());
    }
    end_piece_ = first_piece + pieces;
  }

  std::int64_t end_piece() const { return end_piece_; }
  std::unique_ptr<Pass> make_pass(Search& search) const {
    return std::unique_ptr<Pass>(new Pass(
        search.plan_.chunk_size, symmetric_,
        [&] {
          return PreparedPairs(search.kernels_, search.metric_.accumulation,
                               search.scale_, rows_, columns_,
                               search.plan_.chunk_size);
        },
        [&] { return Sink(search, rows_, columns_); }));
  }
  void run(Pass& pass, std::int64_t piece) const {
    const std::int64_t at = piece - first_piece_;
    if (sorted_) {
      const ChunkPair& pair = near_[static_cast<std::size_t>(at)];
      pass.chunk(pair.row, pair.column);
    } else if (symmetric_) {
      run_piece(schedule_, at, pass);
    } else {
      pass.chunk(at / across_, at % across_);
    }
  }
  /// The number of pairs in chunks that are far from each other, as
  /// Chunk::pairs() counts.
  double far_pairs() const {
    if (!sorted_) return 0.0;
    const double rows = static_cast<double>(rows_.size());
    double pairs = symmetric_ ? rows * rows / 2.0
                              : rows * static_cast<double>(columns_.size());
    for (const ChunkPair& near : near_) {
      const double of_row =
          static_cast<double>(rows_.spans->num_points(near.row));
      const double of_column =
          static_cast<double>(columns_.spans->num_points(near.column));
      pairs -= symmetric_ && near.row == near.column ? of_row * of_row / 2.0
                                                     : of_row * of_column;
    }
    return pairs;
  }

 private:
  /// The number of rounds in a piece. Every thread gets some 16 pieces of that
  /// many rounds, so that no thread waits long for the last piece.
  static std::int64_t span(const Search& search, const Meeting& meeting) {
    const std::int64_t down = search.chunks_of(*meeting.rows);
    const std::int64_t rounds = down * (down / 2 + 1);
    return std::max<std::int64_t>(
        1,
        std::min<std::int64_t>(8, rounds / (16 * search.request_.num_threads)));
  }

  /// The chunks have limits for this meeting alone, since a point may have
  /// another list in each.
  void list_near(const Search& search) {
    row_spans_ = rows_.spans->without_limits();
    rows_.spans = row_spans_.get();
    search.limit_chunks(rows_, columns_);
    if (symmetric_) {
      columns_.spans = rows_.spans;
    } else {
      column_spans_ = columns_.spans->without_limits();
      columns_.spans = column_spans_.get();
      if (search.is_graph_) {
        search.limit_chunks(columns_, rows_);
      } else {  // queries alone take neighbours
        for (std::int64_t c = 0; c < column_spans_->size(); ++c)
          column_spans_->set_limit(c, -HUGE_VALF);
      }
    }
    near_ = near_chunks(*rows_.spans, *columns_.spans, symmetric_,
                        search.request_.num_threads);
  }

  PointBlock rows_, columns_;
  std::unique_ptr<ChunkSpans> row_spans_, column_spans_;
  bool sorted_;
  std::int64_t across_;
  bool symmetric_;
  CirculantSchedule schedule_;
  std::vector<ChunkPair> near_;
  std::int64_t first_piece_, end_piece_;
};

/// Sets the limits of the block's chunks, for neighbours among the others.
void Search::limit_chunks(const PointBlock& block,
                          const PointBlock& others) const {
  ChunkSpans& spans = *block.spans;
  run_pieces(spans.size(), request_.num_threads, {}, [&] {
    return [&, threshold =
                   std::vector<std::int32_t>()](std::int64_t chunk) mutable {
      threshold.clear();
      for (std::int64_t p = 0; p < spans.num_points(chunk); ++p)
        threshold.push_back(
            threshold_[list_of(block, chunk * plan_.chunk_size + p, others)
                           .value]
                .load(std::memory_order_relaxed));
      spans.set_limit(chunk,
                      limit_of(spans.tiles(), scale_, threshold.data(),
                               static_cast<std::int64_t>(threshold.size())));
    };
  });
}

void Search::meet(const std::vector<Meeting>& meetings, double from,
                  double to) {
  std::vector<Part> parts;
  std::int64_t num_pieces = 0;
  for (const Meeting& meeting : meetings) {
    parts.emplace_back(*this, meeting, num_pieces);
    num_pieces = parts.back().end_piece();
    counts_.pruned += parts.back().far_pairs();
  }
  /// The state of one thread, which works on one part at a time.
  struct Hand {
    const Part* part = nullptr;
    std::unique_ptr<Part::Pass> pass;
    PassCounts counts;
    void leave() {
      if (pass != nullptr) counts.add(pass->counts());
    }
  };
  run_pieces(
      num_pieces, request_.num_threads, {progress_, from, to},
      [] { return Hand(); },
      [&](Hand& hand, std::int64_t piece) {
        const Part& part = *std::upper_bound(
            parts.begin(), parts.end(), piece,
            [](std::int64_t at, const Part& p) { return at < p.end_piece(); });
        if (hand.part != &part) {
          hand.leave();
          hand.part = &part;
          hand.pass = part.make_pass(*this);
        }
        part.run(*hand.pass, piece);
      },
      [&](Hand& hand) {
        hand.leave();
        counts_.add(hand.counts);
      });
}

void Search::meet_other_groups(const PointBlock& points, double from,
                               double to) {
  other_groups_ = true;
  meet({{&points, &points}}, from, to);
  other_groups_ = false;
}

std::int64_t Search::fill_short(const Meeting& meeting) {
  const PointBlock& rows = *meeting.rows;
  const PointBlock& columns = *meeting.columns;
  const std::int64_t num_columns = columns.size();
  std::vector<std::int64_t> few;
  for (std::int64_t at = 0; at < rows.size(); ++at)
    if (!lists_.is_full(list_of(rows, at, columns))) few.push_back(at);
  const std::int64_t count = static_cast<std::int64_t>(few.size());
  run_pieces(count, request_.num_threads, {progress_, 1.0, 1.0}, [&] {
    std::unique_ptr<RowSums> sums(new RowSums(kernels_, metric_.accumulation,
                                              *rows.points, *columns.points));
    return [&, sums_of = std::move(sums)](std::int64_t piece) mutable {
      const std::int64_t at = few[static_cast<std::size_t>(piece)];
      const Place row = rows.place(at), list = list_of(rows, at, columns);
      const PointId self =
          is_graph_ ? rows.id(row) : self_of(AnswerRow{rows.id(row).value});
      lists_.clear(list);
      const double* const sum = (*sums_of)(
          row, num_columns, [&](std::int64_t c) { return columns.place(c); });
      for (std::int64_t c = 0; c < num_columns; ++c) {
        const Place column = columns.place(c);
        const PointId id = columns.id(column);
        if (id == self) continue;
        lists_.offer(list,
                     rule_(sum[c], rows.points->sums[row.value],
                           columns.points->sums[column.value]),
                     id);
      }
    };
  });
  counts_.exact +=
      static_cast<double>(count) * static_cast<double>(num_columns);
  return count;
}

bool Search::emit(const Neighbours& out, const std::vector<std::int32_t>& place,
                  const PreparedPoints* rows, const PreparedPoints* columns) {
  std::atomic<bool> beyond{false};
  constexpr std::int64_t kBlock = 64;
  const bool correlate = out.correlation != nullptr && columns != nullptr;
  const std::int64_t k = request_.k;
  const std::int64_t num_lists =
      request_.groups == nullptr ? 1 : request_.groups->num_lists();
  run_pieces(
      (out.rows + kBlock - 1) / kBlock, request_.num_threads,
      {progress_, 1.0, 1.0}, [&] {
        std::unique_ptr<RowSums> products;
        if (correlate)
          products.reset(
              new RowSums(kernels_, Accumulation::dot, *rows, *columns));
        return [&, of = std::move(products)](std::int64_t block) mutable {
          const std::int64_t last = std::min(out.rows, (block + 1) * kBlock);
          for (std::int64_t i = block * kBlock; i < last; ++i) {
            const Place at = {place[static_cast<std::size_t>(i)]};
            const AnswerRow row = AnswerRow::of(i);
            if (at.none()) {
              emit_missing(out, row, num_lists * k);
              continue;
            }
            for (std::int64_t n = 0; n < num_lists; ++n) {
              const Place list = {stored_list(row, n) * num_places_ + at.value};
              const std::int64_t first = out.at(row, Rank{n * k});
              emit_list(out, first, list, &beyond);
              if (!of) continue;
              const std::int32_t* index = lists_.indices(list);
              const auto other = [&](std::int64_t rank) {
                return columns->order.place_of(PointId{index[rank]});
              };
              const double* sum = (*of)(at, k, other);
              for (std::int64_t rank = 0; rank < k; ++rank)
                out.correlation[first + rank * out.step()] =
                    rule_.correlation(sum[rank], rows->sums[at.value],
                                      columns->sums[other(rank).value]);
            }
          }
        };
      });
  return !beyond;
}

/// first: the position of the list's first neighbour in `out`.
void Search::emit_list(const Neighbours& out, std::int64_t first, Place list,
                       std::atomic<bool>* beyond) {
  const std::int64_t k = request_.k, step = out.step();
  // The proof excludes this. The check ensures that a fault never returns
  // garbage.
  if (lists_.sort(list) < k)
    throw std::logic_error("a list of neighbours is not full");
  const double* distance = lists_.distances(list);
  const std::int32_t* index = lists_.indices(list);
  if (!is_in_range(distance[0]) || !is_in_range(distance[k - 1]))
    *beyond = true;
  for (std::int64_t rank = 0; rank < k; ++rank) {
    out.index[first + rank * step] = index[rank] + 1;
    out.distance[first + rank * step] = distance[rank];
  }
}

/// The sample that seeds a meeting's rows. num_groups is 0 if there are too few
/// points.
struct Search::Sample {
  const Meeting& meeting;
  const PointBlock& rows;
  const PointBlock& columns;
  std::int64_t num_chunks = 0;
  int num_groups = 0;
  std::int64_t rank = 0;  ///< the rank of a row's limit in the sample
  bool certain = true;
  Side side(const FilterRows& of, std::int64_t place) const {
    return certain ? of.upper_side(place) : of.likely_side(place);
  }
};

std::vector<std::int64_t> Search::nearest_chunks(const Meeting& meeting,
                                                 std::int64_t split,
                                                 std::int64_t count,
                                                 std::int64_t chunks) {
  const ChunkSpans& rows = *meeting.rows->spans;
  const ChunkSpans& columns = *meeting.columns->spans;
  std::vector<std::pair<float, std::int64_t>> all;
  for (std::int64_t c = 0; c < chunks; ++c)
    all.emplace_back(rows.tiles().between(rows[split], columns[c]), c);
  std::partial_sort(all.begin(), all.begin() + count, all.end());
  std::vector<std::int64_t> nearest;
  for (std::int64_t m = 0; m < count; ++m)
    nearest.push_back(all[static_cast<std::size_t>(m)].second);
  return nearest;
}

/// A rank that the number of a row's k nearest among `seen` of `all` points
/// rarely exceeds: the expected number, plus 3.5 standard deviations, plus 3.
/// Of 10,000 rows two or three exceed it.
std::int64_t Search::likely_rank(std::int64_t k, std::int64_t seen,
                                 std::int64_t all, Seeds seeds) {
  const double share = static_cast<double>(seen) / static_cast<double>(all);
  const double expected = share * static_cast<double>(k);
  if (seeds == Seeds::hasty)
    return std::max<std::int64_t>(1, std::llround(expected));
  const double deviation =
      std::sqrt(expected * (1.0 - share) *
                (1.0 - static_cast<double>(k) / static_cast<double>(all)));
  return static_cast<std::int64_t>(expected + 3.5 * deviation + 3.0);
}

Search::Sample Search::sample_of(const Meeting& meeting, Seeds seeds) const {
  Sample sample = {meeting, *meeting.rows, *meeting.columns};
  const PointBlock& columns = sample.columns;
  const std::int64_t size = plan_.chunk_size;
  const std::int64_t full_chunks = columns.size() / size;
  const bool own = among_themselves(sample.rows, columns);
  const std::int64_t others = full_chunks - (own && !meeting.sorted() ? 1 : 0);
  if (!scale_.has_filter() || others < 1) return sample;
  // In the order of keys, or of a tree, a row's own chunk is usually among the
  // nearest, and the row itself may be in the sample.
  const std::int64_t k = num_seeds() + (own && meeting.sorted() ? 1 : 0);
  // With a sample of m points, about k log(n / m) pairs of a row pass the
  // filter until its list is final. The sample has k c points, where c is the
  // cost of such a pair (some 200 cycles) over that of a filtered pair. At that
  // size another sampled point costs as much as it saves.
  const double filtered_pair =
      (static_cast<double>(columns.filter->steps) / 2 + 6) / 16;
  const std::int64_t wanted =
      static_cast<std::int64_t>(200.0 * static_cast<double>(k) / filtered_pair /
                                    static_cast<double>(size) +
                                1.0);
  sample.num_chunks =
      std::max<std::int64_t>(1, std::min({wanted, others, full_chunks / 4}));
  // The nearest chunks give better limits than a random sample, and the first
  // chunks of the search improve them. So fewer chunks suffice.
  if (meeting.sorted())
    sample.num_chunks = std::min<std::int64_t>(others, 1 + 2 * k / size);
  const std::int64_t num_panels = sample.num_chunks * size / Tile::panel;
  sample.rank = k;
  sample.certain = seeds == Seeds::certain;
  if (seeds != Seeds::certain && !meeting.sorted())
    sample.rank = std::min(
        k, likely_rank(k, sample.num_chunks * size, columns.size(), seeds));
  // The rank-th smallest minimum of a group must exist, and be close to the
  // rank-th smallest of all distances.
  const std::int64_t minima = sample.rank < k ? 4 * sample.rank : 2 * k;
  const int num_groups = static_cast<int>(std::min<std::int64_t>(
      num_panels, (minima + Tile::panel - 1) / Tile::panel));
  if (num_groups * Tile::panel >= sample.rank + sample.rank / 2)
    sample.num_groups = num_groups;
  return sample;
}

void Search::seed(const std::vector<Meeting>& meetings, double from, double to,
                  Seeds seeds) {
  std::vector<Sample> samples;
  std::vector<std::int64_t> end_piece;
  std::int64_t num_pieces = 0;
  for (const Meeting& meeting : meetings) {
    samples.push_back(sample_of(meeting, seeds));
    if (samples.back().num_groups > 0) num_pieces += chunks_of(*meeting.rows);
    end_piece.push_back(num_pieces);
  }
  run_pieces(num_pieces, request_.num_threads, {progress_, from, to}, [&] {
    return [&, best = std::vector<float>()](std::int64_t piece) mutable {
      const std::size_t at = static_cast<std::size_t>(
          std::upper_bound(end_piece.begin(), end_piece.end(), piece) -
          end_piece.begin());
      seed_split(samples[at], piece - (at > 0 ? end_piece[at - 1] : 0), best);
    };
  });
}

void Search::seed_split(const Sample& sample, std::int64_t split,
                        std::vector<float>& best) {
  const PointBlock& rows = sample.rows;
  const PointBlock& columns = sample.columns;
  const int num_groups = sample.num_groups;
  const std::int64_t size = plan_.chunk_size;
  const std::int64_t row0 = split * size;
  const std::int64_t num_rows = std::min(size, rows.size() - row0);
  const std::int64_t full_chunks = columns.size() / size;
  const std::size_t width = static_cast<std::size_t>(num_groups) * Tile::panel;
  best.assign(static_cast<std::size_t>(size) * width,
              std::numeric_limits<float>::infinity());
  alignas(64) std::int32_t tile[Tile::rows * Tile::columns];
  const FilterRows& a = *rows.filter;
  const FilterRows& b = *columns.filter;
  const bool own = among_themselves(rows, columns);
  const bool sorted = sample.meeting.sorted();
  std::vector<std::int64_t> nearest;
  if (sorted)
    nearest =
        nearest_chunks(sample.meeting, split, sample.num_chunks, full_chunks);
  int group = 0;
  for (std::int64_t m = 0, chunk = split; m < sample.num_chunks; ++m) {
    if (sorted) {
      chunk = nearest[static_cast<std::size_t>(m)];
    } else {
      do {
        chunk = (chunk + 1) % full_chunks;
      } while (own && chunk == split);
    }
    for (std::int64_t c = 0; c < size; c += Tile::columns) {
      const std::int64_t column = chunk * size + c;
      for (std::int64_t r = 0; r < num_rows; r += Tile::rows) {
        const std::int64_t row = row0 + r;
        kernels_.accumulate(scale_.form->product, a.row(row), b.panel(column),
                            Tile::panels, a.steps, tile);
        for (std::int64_t q = 0; q < Tile::rows && r + q < num_rows; ++q)
          kernels_.lower_best(
              scale_.form->test, tile + q * Tile::columns, Tile::panels,
              sample.side(a, row + q), sample.side(b, column), group,
              num_groups,
              best.data() + static_cast<std::size_t>(r + q) * width);
        poll_after(tile_cost(a.steps));
      }
      group = (group + Tile::panels) % num_groups;
    }
  }
  for (std::int64_t r = 0; r < num_rows; ++r) {
    float* keys = best.data() + static_cast<std::size_t>(r) * width;
    const std::int64_t last = sample.rank - 1;
    std::nth_element(keys, keys + last, keys + width);
    const double limit =
        thresholds_.upper_distance(keys[last], sample.side(a, row0 + r));
    const Place list = list_of(rows, row0 + r, columns);
    if (!(limit < lists_.limit(list))) continue;
    lists_.set_limit(list, limit);
    set_threshold(list);
  }
}

}  // namespace cpu
}  // namespace fsknn
