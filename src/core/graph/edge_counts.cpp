#include "core/graph/edge_counts.hpp"

#include <algorithm>
#include <utility>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// Several graphs are counted together, so that each row's table is fetched once
// for all of them. Their lists take at most this much memory.
constexpr std::int64_t kListBytes = std::int64_t{1} << 26;
constexpr std::int64_t kMostAtOnce = 16;

// Rows per piece of work: whole cache lines of each column.
constexpr std::int64_t kRowsAtOnce = 256;

constexpr std::size_t kFirstPlaces = 64;

}  // namespace

EdgeCounts::EdgeCounts(std::int64_t rows, std::int64_t k,
                       std::int64_t num_graphs, std::int64_t least)
    : rows_(rows),
      k_(k),
      num_graphs_(num_graphs),
      least_(std::max<std::int64_t>(least, 1)),
      at_once_(std::clamp<std::int64_t>(
          kListBytes / (4 * std::max<std::int64_t>(rows * k, 1)), 1,
          kMostAtOnce)),
      lists_(at_once_ * rows * k),
      tables_(static_cast<std::size_t>(rows)) {}

EdgeCounts::Entry* EdgeCounts::find(Table& table, std::int32_t point) {
  const std::size_t mask = table.places.size() - 1;
  std::size_t at = home(table, point);
  while (table.places[at].point >= 0 && table.places[at].point != point)
    at = (at + 1) & mask;
  return &table.places[at];
}

/// Doubles the table, or keeps its size if enough entries are dropped.
void EdgeCounts::grow(Table& table, std::int64_t to_come) {
  std::vector<Entry> before = std::move(table.places);
  const auto stays = [&](const Entry& e) {
    return e.point >= 0 && (e.watched || may_reach(e.count, to_come));
  };
  const std::size_t left = static_cast<std::size_t>(
      std::count_if(before.begin(), before.end(), stays));
  std::size_t places = kFirstPlaces;
  while (places < 2 * left + 2) places *= 2;
  table.places.assign(places, Entry{-1, 0, 0});
  table.used = static_cast<std::int32_t>(left);
  for (const Entry& e : before)
    if (stays(e)) *find(table, e.point) = e;
}

/// to_come: graphs after the current one.
void EdgeCounts::add(Table& table, std::int32_t point, bool watched,
                     std::int64_t to_come) {
  const std::size_t used = static_cast<std::size_t>(table.used);
  // At least one place stays free, which ends a search.
  if (4 * (used + 1) > 3 * table.places.size()) grow(table, to_come);
  Entry* const e = find(table, point);
  if (e->point < 0) {
    if (!watched && !may_reach(1, to_come)) return;
    *e = Entry{point, watched ? 1u : 0u, 0};
    ++table.used;
  }
  if (!watched) ++e->count;
}

void EdgeCounts::watch(AnswerRow row, PointId to) {
  add(tables_[static_cast<std::size_t>(row.value)], to.value, true,
      num_graphs_);
}

void EdgeCounts::take(int num_threads) {
  if (++waiting_ == at_once_) count_waiting(num_threads);
}

void EdgeCounts::finish(int num_threads) { count_waiting(num_threads); }

void EdgeCounts::count_waiting(int num_threads) {
  const std::int64_t pieces = (rows_ + kRowsAtOnce - 1) / kRowsAtOnce;
  const double operations = 10.0 * static_cast<double>(waiting_ * rows_ * k_);
  run_pieces(pieces, useful_threads(num_threads, operations), {}, [&] {
    return [&](std::int64_t piece) {
      const std::int64_t end = std::min(rows_, (piece + 1) * kRowsAtOnce);
      for (std::int64_t row = piece * kRowsAtOnce; row < end; ++row) {
        Table& table = tables_[static_cast<std::size_t>(row)];
        const std::int32_t* list = lists_.data() + row;
        for (std::int64_t g = 0; g < waiting_; ++g) {
          const std::int64_t to_come = num_graphs_ - (counted_ + g) - 1;
          for (std::int64_t rank = 0; rank < k_; ++rank, list += rows_)
            if (*list > 0) add(table, *list - 1, false, to_come);
        }
      }
    };
  });
  counted_ += waiting_;
  waiting_ = 0;
}

std::int64_t EdgeCounts::count(AnswerRow row, PointId to) const {
  const Table& table = tables_[static_cast<std::size_t>(row.value)];
  if (table.places.empty()) return 0;
  const Entry* const e = find(const_cast<Table&>(table), to.value);
  return e->point < 0 ? 0 : e->count;
}

EdgeCounts::Others EdgeCounts::others(int num_threads) const {
  const std::int64_t to_come = num_graphs_ - counted_;
  const std::int64_t pieces = (rows_ + kRowsAtOnce - 1) / kRowsAtOnce;
  std::vector<Others> of_piece(static_cast<std::size_t>(pieces));
  run_pieces(pieces, num_threads, {}, [&] {
    return [&, of_row = std::vector<Entry>()](std::int64_t piece) mutable {
      Others& found = of_piece[static_cast<std::size_t>(piece)];
      const std::int64_t end = std::min(rows_, (piece + 1) * kRowsAtOnce);
      for (std::int64_t row = piece * kRowsAtOnce; row < end; ++row) {
        of_row.clear();
        for (const Entry& e : tables_[static_cast<std::size_t>(row)].places)
          if (e.point >= 0 && !e.watched && may_reach(e.count, to_come))
            of_row.push_back(e);
        std::sort(
            of_row.begin(), of_row.end(),
            [](const Entry& a, const Entry& b) { return a.point < b.point; });
        for (const Entry& e : of_row) {
          found.row.push_back(static_cast<std::int32_t>(row));
          found.to.push_back(e.point);
          found.count.push_back(static_cast<std::int32_t>(e.count));
        }
      }
    };
  });
  Others all;
  const auto append = [](std::vector<std::int32_t>& to,
                         const std::vector<std::int32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const Others& found : of_piece) {
    append(all.row, found.row);
    append(all.to, found.to);
    append(all.count, found.count);
  }
  return all;
}

}  // namespace fsknn
