// Triples by tables of alleles. An apex and the rows of a panel are multiplied
// once, and the products with all columns are sums of three. The pairs' sums of
// rows and columns are shared by a group of apexes. A tile is skipped if the
// apex's pairs exclude its triples. The table's largest entry is computed in
// floats, and in double where that is not enough. (The vignette "proofs" has
// the proofs.)
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <mutex>

#include "core/base/pieces.hpp"
#include "core/contract/metrics.hpp"
#include "core/contract/table_numbers.hpp"
#include "cpu/filter/count_words.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/triples/triples.hpp"
#include "cpu/triples/triples_apex.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int64_t kTablePanel = Tile::panel;
static_assert(kStageBlock == kTablePanel, "a panel of rows is in one stage");

/// Counts in panels: bits of DUO's, else bytes.
class CountRows {
 public:
  CountRows(const Request& request, const PreparedPoints& points,
            int num_threads)
      : points(points),
        metric(metric_of(request, points)),
        table(metric.table),
        packing(table),
        product(packing.product),
        steps(packing.words(points.num_features)),
        panels((points.size() + kTablePanel - 1) / kTablePanel),
        words_(panels * steps * kTablePanel),
        weight_(panels * kTablePanel) {
    run_pieces(panels, num_threads, {}, [&] {
      return [&](std::int64_t p) {
        std::fill_n(words_.data() + p * steps * kTablePanel,
                    steps * kTablePanel, 0);
        for (std::int64_t r = 0; r < kTablePanel; ++r)
          pack(p * kTablePanel + r);
        poll_after(3.0 * static_cast<double>(kTablePanel * points.padded));
      };
    });
  }

  /// [step][16]
  const std::int32_t* panel(std::int64_t p) const {
    return words_.data() + p * steps * kTablePanel;
  }
  /// Words of one row, kTablePanel apart.
  const std::int32_t* words(std::int64_t place) const {
    return panel(place / kTablePanel) + place % kTablePanel;
  }
  /// Weights of counted alleles.
  const float* weight(std::int64_t place) const {
    return weight_.data() + place;
  }
  double copies() const { return table.copies; }
  /// Whether all entries are exact floats.
  bool exact() const { return table.samples < kMostTableSamples; }
  /// Products of one row (its words) with a panel's rows.
  void multiply(const std::int32_t* row, const std::int32_t* rows,
                std::int32_t* to) const {
    const bool is_bits = product == Product::common_bits;
    for (std::int64_t f = 0; f < steps; ++f) {
      const std::uint32_t x = static_cast<std::uint32_t>(row[f * kTablePanel]);
      // Bytes of 255 where the row's byte is 1, and where it is 2.
      const std::uint32_t one = (x & 0x01010101u) * 255u;
      const std::uint32_t two = (x >> 1 & 0x01010101u) * 255u;
      for (std::int64_t r = f * kTablePanel; r < (f + 1) * kTablePanel; ++r) {
        const std::uint32_t y = static_cast<std::uint32_t>(rows[r]);
        to[r] = static_cast<std::int32_t>(is_bits ? x & y
                                                  : (y & one) + (y << 1 & two));
      }
    }
  }

  const PreparedPoints& points;
  const MetricEntry metric;
  const TableTerms& table;
  const CountWords packing;
  const Product product;
  const std::int64_t steps;
  const std::int64_t panels;

 private:
  void pack(std::int64_t place) {
    weight_[place] = 0.0f;
    if (place >= points.size()) return;
    weight_[place] =
        static_cast<float>(weight_of_counted(table, points.sums[place]));
    std::int32_t* const to = words_.data() +
                             place / kTablePanel * steps * kTablePanel +
                             place % kTablePanel;
    const double* const row = points.row(Place{place});
    for (std::int64_t f = 0; f < points.num_features; ++f)
      to[packing.word_of(f) * kTablePanel] |=
          static_cast<std::int32_t>(packing.part(row[f], f));
  }

  Buffer<std::int32_t> words_;
  Buffer<float> weight_;
};

/// A group of apexes of a task, and one thread's sums.
class TablePass {
 public:
  TablePass(const CountRows& rows, const Kernels& kernels,
            const TripleScanner::Task& task)
      : rows_(rows),
        kernels_(kernels),
        task_(task),
        num_places_(rows.panels * kTablePanel),
        gathered_(kTablePanel * rows.steps),
        products_(kTablePanel * kTablePanel * rows.steps),
        with_apex_(kTablePanel * num_places_),
        without_(kTablePanel * num_places_),
        bounds_(kTablePanel * rows.panels) {}

  /// Calls take(hit) with the triples of the task's apexes first to end - 1,
  /// for the panels of rows of part `part` of `parts`. least(apex): the
  /// smallest entry in floats that is wanted.
  template <class Least, class Take>
  void run(std::int64_t first, std::int64_t end, std::int64_t part,
           std::int64_t parts, const Least& least, const Take& take) {
    enter(first, end);
    for (std::int64_t p = part; p < rows_.panels; p += parts) {
      choose(p, least);
      if (active_.empty()) continue;
      for (std::int64_t q = p; q < rows_.panels; q += Tile::panels)
        take_block(p, q, least, take);
    }
  }

  /// Row `row` of an apex with some columns.
  struct Columns {
    std::int64_t apex;  ///< its number in the task
    std::int64_t row, first, end;
    std::uint64_t keep;
    const std::int32_t* sums;
    const float* with_row;
    const float* largest;
  };

  /// Whether a column belongs to a triple of the task.
  bool has(const Columns& at, std::int64_t column) const {
    return column > at.row && is_other(at.apex, column);
  }

  /// The similarity of a row and a column, in double.
  double similarity(const Columns& at, std::int64_t column) const {
    const std::int64_t apex = place_of(at.apex);
    if (!rows_.exact())
      return table_of_three(rows_.metric, rows_.points, apex, at.row, column)
          .similarity;
    const double c = rows_.copies();
    const Buffer<double>& sums = rows_.points.sums;
    const float* const with_apex = of_apex(with_apex_, at.apex - first_);
    const std::int64_t i = column - at.first;
    const ThreeSums s = {static_cast<double>(at.sums[i]),
                         static_cast<double>(with_apex[at.row]) / c,
                         static_cast<double>(with_apex[column]) / c,
                         static_cast<double>(at.with_row[i]) / c,
                         sums[apex],
                         sums[at.row],
                         sums[column]};
    int which;
    return AlleleTable::similarity_of_three(s, rows_.table, which);
  }
  std::int64_t place_of(std::int64_t apex) const {
    return task_.apexes[static_cast<std::size_t>(apex)].apex;
  }
  double comparisons() const { return comparisons_; }

 private:
  const float* of_apex(const Buffer<float>& of, std::int64_t a) const {
    return of.data() + a * num_places_;
  }
  float* of_apex(Buffer<float>& of, std::int64_t a) const {
    return of.data() + a * num_places_;
  }
  bool is_other(std::int64_t apex, std::int64_t place) const {
    const std::int64_t own = place_of(apex);
    if (place >= rows_.points.size() || place == own) return false;
    return place > own ||
           (!task_.contained.empty() &&
            task_.contained[static_cast<std::size_t>(place)] == 0);
  }
  bool is_row(std::int64_t apex, std::int64_t place) const {
    const TripleApex& of = task_.apexes[static_cast<std::size_t>(apex)];
    return place >= of.begin && place < of.end && is_other(apex, place);
  }

  void accumulate(const std::int32_t* rows, std::int64_t panel,
                  std::int64_t num_panels, std::int32_t* sums) const {
    for (std::int64_t half = 0; half < kTablePanel; half += Tile::rows)
      kernels_.accumulate(rows_.product, rows + half, rows_.panel(panel),
                          static_cast<int>(num_panels), rows_.steps,
                          sums + half * Tile::columns);
    poll_after(16.0 * static_cast<double>(rows_.steps));
  }

  /// The pairs' sums of the apexes and all points.
  void enter(std::int64_t first, std::int64_t end) {
    if (first == first_) return;
    first_ = first;
    end_ = end;
    std::fill_n(gathered_.data(), gathered_.size(), 0);
    for (std::int64_t a = first; a < end; ++a)
      for (std::int64_t f = 0; f < rows_.steps; ++f)
        gathered_[f * kTablePanel + a - first] =
            rows_.words(place_of(a))[f * kTablePanel];
    const double c = rows_.copies();
    for (std::int64_t p = 0; p < rows_.panels; ++p) {
      accumulate(gathered_.data(), p, 1, sums_);
      for (std::int64_t a = 0; a < end - first; ++a)
        for (std::int64_t i = 0; i < kTablePanel; ++i) {
          const std::int64_t place = p * kTablePanel + i;
          const double with = c * sums_[a * Tile::columns + i];
          const double all =
              place < rows_.points.size() ? rows_.points.sums[place] : 0.0;
          of_apex(with_apex_, a)[place] = static_cast<float>(with);
          of_apex(without_, a)[place] = static_cast<float>(c * c * all - with);
        }
      for (std::int64_t a = 0; a < end - first; ++a)
        bounds_[a * rows_.panels + p] = bound_of(first + a, p);
    }
  }

  /// No triple of the apex with a point of the panel has a larger entry, apart
  /// from rounding within the threshold's slack.
  double bound_of(std::int64_t apex, std::int64_t panel) const {
    double most = 0.0;
    for (std::int64_t r = 0; r < kTablePanel; ++r) {
      const std::int64_t place = panel * kTablePanel + r;
      if (place >= rows_.points.size() || place == place_of(apex)) continue;
      most = std::max(most, most_of_row(rows_.table, numbers_of(apex, place)));
    }
    return most;
  }
  bool may_reach(std::int64_t apex, std::int64_t panel, float least) const {
    return !(bounds_[(apex - first_) * rows_.panels + panel] <
             static_cast<double>(least));
  }

  /// Multiplies the apexes that have rows in a panel with it.
  template <class Least>
  void choose(std::int64_t panel, const Least& least) {
    active_.clear();
    if (!task_.contained.empty() &&
        !is_in_stage(panel, task_.stage, task_.stages))
      return;
    const std::int64_t from = panel * kTablePanel;
    for (std::int64_t a = first_; a < end_; ++a) {
      if (!may_reach(a, panel, least(a))) continue;
      bool any = false;
      for (std::int64_t r = 0; r < kTablePanel; ++r)
        any = any || is_row(a, from + r);
      if (!any) continue;
      active_.push_back(a);
      rows_.multiply(rows_.words(place_of(a)), rows_.panel(panel),
                     products_of(a));
      for (std::int64_t r = 0; r < kTablePanel; ++r)
        if (from + r < rows_.points.size())
          numbers_[a - first_][r] = numbers_of(a, from + r);
      poll_after(4.0 * static_cast<double>(rows_.steps));
    }
  }

  std::int32_t* products_of(std::int64_t apex) {
    return products_.data() + (apex - first_) * kTablePanel * rows_.steps;
  }

  TripleTableRow numbers_of(std::int64_t apex, std::int64_t place) const {
    const Buffer<double>& sums = rows_.points.sums;
    const double with = of_apex(with_apex_, apex - first_)[place];
    return triple_table_row(rows_.table, with / rows_.copies(),
                            sums[place_of(apex)], sums[place]);
  }

  template <class Least, class Take>
  void take_block(std::int64_t p, std::int64_t q, const Least& least,
                  const Take& take) {
    const std::int64_t wide =
        std::min<std::int64_t>(Tile::panels, rows_.panels - q);
    const std::int64_t first = q * kTablePanel;
    bool has_pairs = false;
    for (const std::int64_t a : active_) {
      bool may = false;
      for (std::int64_t panel = q; panel < q + wide; ++panel)
        may = may || may_reach(a, panel, least(a));
      if (!may) continue;
      if (!has_pairs) {
        accumulate(rows_.panel(p), q, wide, sums_);
        for (std::int64_t i = 0; i < kTablePanel * Tile::columns; ++i)
          with_row_[i] = static_cast<float>(rows_.copies() * sums_[i]);
        has_pairs = true;
      }
      accumulate(products_of(a), q, wide, sums_);
      const TripleTableColumns columns = {
          of_apex(with_apex_, a - first_) + first,
          of_apex(without_, a - first_) + first, nullptr, rows_.weight(first)};
      for (std::int64_t r = 0; r < kTablePanel; ++r) {
        const std::int64_t row = p * kTablePanel + r;
        if (!is_row(a, row)) continue;
        TripleTableColumns of_row = columns;
        of_row.with_row = with_row_ + r * Tile::columns;
        Columns at = {a,
                      row,
                      first,
                      std::min(first + wide * kTablePanel, rows_.points.size()),
                      0,
                      sums_ + r * Tile::columns,
                      of_row.with_row,
                      largest_};
        at.keep =
            kernels_.triple_tables(numbers_[a - first_][r], of_row, at.sums,
                                   static_cast<int>(wide), least(a), largest_);
        take(at);
      }
      comparisons_ += static_cast<double>(kTablePanel * wide * kTablePanel) *
                      static_cast<double>(rows_.points.num_features);
    }
  }

  const CountRows& rows_;
  const Kernels& kernels_;
  const TripleScanner::Task& task_;
  const std::int64_t num_places_;
  std::int64_t first_ = -1, end_ = -1;  ///< of the group
  std::vector<std::int64_t> active_;
  Buffer<std::int32_t> gathered_;      ///< the apexes' panel
  Buffer<std::int32_t> products_;      ///< [apex][step][16]
  Buffer<float> with_apex_, without_;  ///< [apex][place]
  Buffer<double> bounds_;              ///< [apex][panel]
  std::array<std::array<TripleTableRow, kTablePanel>, kTablePanel> numbers_;
  std::int32_t sums_[kTablePanel * Tile::columns] = {};
  float with_row_[kTablePanel * Tile::columns];
  float largest_[Tile::columns] = {};
  double comparisons_ = 0;
};

class TableScanner : public TripleScanner {
 public:
  TableScanner(const Request& request, const PreparedPoints& points)
      : kernels_(choose_kernels(request.instruction_set)),
        threads_(triple_threads(request, points)),
        rows_(request, points, threads_),
        loci_(rows_.table) {}

  void find(const Task& task, const Take& take, TripleStats& stats,
            Progress* progress) override {
    std::mutex lock;
    run_groups(
        task, progress, [&] { return Finder(*this, task, take, lock); },
        [](Finder& finder, const Group& group) { finder(group); },
        [&](Finder& finder) { finder.merge(stats); });
  }

  std::vector<std::int32_t> most_alike(const Task&, std::int64_t,
                                       Progress*) override {
    return {};
  }

  void count(const Task& task, const std::vector<double>& breaks,
             std::vector<std::int64_t>& counts, TripleStats& stats,
             Progress* progress) override {
    const std::vector<std::int32_t> cells = cells_of(breaks);
    run_groups(
        task, progress, [&] { return Counter(*this, task, breaks, cells); },
        [](Counter& counter, const Group& group) { counter(group); },
        [&](Counter& counter) { counter.merge(counts, stats); });
  }

 private:
  /// Apexes of a task, and a part of the panels.
  struct Group {
    std::int64_t first, end, part, parts;
  };

  template <class MakeWorker, class Work, class Merge>
  void run_groups(const Task& task, Progress* progress, MakeWorker make_worker,
                  Work work, Merge merge) const {
    const std::int64_t count = static_cast<std::int64_t>(task.apexes.size());
    const std::int64_t groups = (count + kTablePanel - 1) / kTablePanel;
    const std::int64_t parts =
        threads_ > 1 && groups < 8 * threads_ ? 4 * threads_ : 1;
    run_pieces(
        groups * parts, threads_, {progress, 0.0, 1.0}, make_worker,
        [&](auto& worker, std::int64_t piece) {
          const std::int64_t first = piece / parts * kTablePanel;
          work(worker, Group{first, std::min(count, first + kTablePanel),
                             piece % parts, parts});
        },
        merge);
  }

  /// No triple that is at least so similar has a smaller entry in floats.
  float limit_of(double similarity) const {
    if (!rows_.exact()) return -kFloatInfinity;
    return float_down(loci_.limit_of(similarity));
  }

  class Finder {
   public:
    Finder(const TableScanner& scanner, const Task& task, const Take& take,
           std::mutex& lock)
        : scanner_(scanner),
          task_(task),
          take_(take),
          lock_(lock),
          pass_(scanner.rows_, scanner.kernels_, task) {}
    void operator()(const Group& group) {
      for (std::int64_t a = group.first; a < group.end; ++a) {
        const std::size_t i = static_cast<std::size_t>(a - group.first);
        best_[i].clear();
        least_[i] = task_.apexes[static_cast<std::size_t>(a)].least;
        limit_[i] = scanner_.limit_of(least_[i]);
      }
      pass_.run(
          group.first, group.end, group.part, group.parts,
          [&](std::int64_t a) {
            return limit_[static_cast<std::size_t>(a - group.first)];
          },
          [&](const TablePass::Columns& at) {
            for (std::uint64_t keep = at.keep; keep != 0; keep &= keep - 1) {
              const std::int64_t column = at.first + __builtin_ctzll(keep);
              if (pass_.has(at, column))
                offer(at, column,
                      static_cast<std::size_t>(at.apex - group.first));
            }
          });
    }
    void merge(TripleStats& stats) {
      hand_over();
      stats.candidates += reranked_;
      stats.reranked += reranked_;
      stats.comparisons += pass_.comparisons();
    }

   private:
    void offer(const TablePass::Columns& at, std::int64_t column,
               std::size_t i) {
      const double similarity = pass_.similarity(at, column);
      reranked_ += 1;
      poll_after(100.0);
      if (!(similarity >= least_[i])) return;
      hits_.push_back({static_cast<std::int32_t>(pass_.place_of(at.apex)),
                       static_cast<std::int32_t>(at.row),
                       static_cast<std::int32_t>(column),
                       static_cast<std::int32_t>(at.apex), similarity});
      if (hits_.size() >= 4096) hand_over();
      if (task_.keep > 0) raise(similarity, i);
    }
    /// The k-th best so far is a threshold for later triples.
    void raise(double similarity, std::size_t i) {
      std::vector<double>& best = best_[i];
      best.push_back(similarity);
      std::push_heap(best.begin(), best.end(), std::greater<double>());
      if (static_cast<std::int64_t>(best.size()) > task_.keep) {
        std::pop_heap(best.begin(), best.end(), std::greater<double>());
        best.pop_back();
      }
      if (static_cast<std::int64_t>(best.size()) < task_.keep ||
          !(best.front() > least_[i]))
        return;
      least_[i] = best.front();
      limit_[i] = scanner_.limit_of(least_[i]);
    }
    void hand_over() {
      const std::lock_guard<std::mutex> held(lock_);
      if (!hits_.empty()) take_(hits_);
      hits_.clear();
    }

    const TableScanner& scanner_;
    const Task& task_;
    const Take& take_;
    std::mutex& lock_;
    TablePass pass_;
    std::array<std::vector<double>, kTablePanel> best_;
    std::array<double, kTablePanel> least_;
    std::array<float, kTablePanel> limit_;
    std::vector<TripleHit> hits_;
    double reranked_ = 0;
  };

  static constexpr std::int32_t kCells = 4096;
  /// The largest entry in floats times this is a cell's number.
  float cells_per_unit() const {
    // An entry's alleles have frequencies of at least f, that of the three
    // together is at most f: multiplier f (1 - parameter f)^3.
    const double p = rows_.table.parameter;
    const double f = p > 0.25 ? 0.25 / p : 1.0;
    const double weight = 1.0 - p * f;
    const double most =
        rows_.table.multiplier * f * weight * weight * weight / loci_.unit;
    return static_cast<float>(kCells / most);
  }
  /// The bins of the cells; -1: a cell has several.
  std::vector<std::int32_t> cells_of(const std::vector<double>& breaks) const {
    std::vector<std::int32_t> cells(kCells, -1);
    if (!rows_.exact()) return cells;
    const double per_unit = static_cast<double>(cells_per_unit());
    for (std::int32_t c = 0; c + 1 < kCells; ++c) {
      // The product of floats is rounded.
      const double from = c / per_unit * (1.0 - 0x1p-22);
      const double to = (c + 1) / per_unit * (1.0 + 0x1p-22);
      const std::size_t low = bin_of(breaks, loci_.least_of(from));
      const std::size_t high = bin_of(breaks, loci_.most_of(to));
      if (low == high)
        cells[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(low);
    }
    return cells;
  }

  class Counter {
   public:
    Counter(const TableScanner& scanner, const Task& task,
            const std::vector<double>& breaks,
            const std::vector<std::int32_t>& cells)
        : per_unit_(scanner.rows_.exact() ? scanner.cells_per_unit() : 0.0f),
          breaks_(breaks),
          cells_(cells),
          pass_(scanner.rows_, scanner.kernels_, task),
          counts_(breaks.size() + 1, 0) {}
    void operator()(const Group& group) {
      pass_.run(
          group.first, group.end, group.part, group.parts,
          [](std::int64_t) { return -kFloatInfinity; },
          [&](const TablePass::Columns& at) {
            std::int32_t cell[Tile::columns];
            for (int i = 0; i < Tile::columns; ++i)
              cell[i] = static_cast<std::int32_t>(
                  std::min(at.largest[i] * per_unit_, kCells - 1.0f));
            const std::int32_t* const bins = cells_.data();
            std::int64_t* const counts = counts_.data();
            const std::int64_t end = at.end - at.first;
            for (std::int64_t i =
                     std::max<std::int64_t>(0, at.row + 1 - at.first);
                 i < end; ++i) {
              const std::int32_t bin = bins[cell[i]];
              ++counts[bin >= 0 ? bin : bin_exactly(at, at.first + i)];
            }
          });
    }
    void merge(std::vector<std::int64_t>& counts, TripleStats& stats) {
      for (std::size_t b = 0; b < counts.size(); ++b) counts[b] += counts_[b];
      stats.candidates += reranked_;
      stats.reranked += reranked_;
      stats.comparisons += pass_.comparisons();
    }

   private:
    std::int64_t bin_exactly(const TablePass::Columns& at, std::int64_t k) {
      reranked_ += 1;
      poll_after(100.0);
      return static_cast<std::int64_t>(
          bin_of(breaks_, pass_.similarity(at, k)));
    }

    const float per_unit_;
    const std::vector<double>& breaks_;
    const std::vector<std::int32_t>& cells_;
    TablePass pass_;
    std::vector<std::int64_t> counts_;
    double reranked_ = 0;
  };

  const Kernels& kernels_;
  const int threads_;
  const CountRows rows_;
  const ThreeLoci loci_;
};

}  // namespace

MakeTripleScanner scanner_for(const Request& request,
                              const MakeTripleScanner& given) {
  if (!request.metric->is_table()) return given;
  return [given](
             const Request& asked,
             const PreparedPoints& points) -> std::unique_ptr<TripleScanner> {
    // With more samples, floats of a device may not be exact.
    if (given && static_cast<double>(points.num_features) < kMostTableSamples)
      return given(asked, points);
    return std::unique_ptr<TripleScanner>(new TableScanner(asked, points));
  };
}

}  // namespace cpu
}  // namespace fsknn
