#include "core/search/merged_lists.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/base/select.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace {

// Rows per piece of work.
constexpr std::int64_t kRows = 256;

std::int64_t num_pieces(std::int64_t rows) {
  return (rows + kRows - 1) / kRows;
}

/// A sorted list that is being merged.
struct Run {
  const double* distance;
  const std::int32_t* index;
  const double* correlation;
  std::int64_t size;
  std::int64_t at = 0;

  bool over() const { return at == size; }
  bool is_nearer(const Run& other) const {
    return other.over() ||
           (!over() && nearer(distance[at], index[at], other.distance[other.at],
                              other.index[other.at]));
  }
};

/// Whether a row's list is valid for num_points points.
bool is_list(const PartialLists& part, std::int64_t first, std::int64_t size,
             PointId own, std::int64_t num_points) {
  for (std::int64_t e = first; e < first + size; ++e) {
    const std::int32_t index = part.index[e];
    if (!is_in_range(part.distance[e]) || index < 1 || index > num_points ||
        index == own.value + 1)
      return false;
    if (e > first && !nearer(part.distance[e - 1], part.index[e - 1],
                             part.distance[e], index))
      return false;
  }
  return true;
}

}  // namespace

MergedLists::MergedLists(std::int64_t num_points, std::int64_t k,
                         bool correlation)
    : num_points_(num_points), k_(k) {
  if (num_points < 1 || k < 1)
    throw std::invalid_argument("there are no such lists");
  size_ = Buffer<std::int32_t>(num_points);
  index_ = Buffer<std::int32_t>(num_points * k);
  distance_ = Buffer<double>(num_points * k);
  if (correlation) correlation_ = Buffer<double>(num_points * k);
  std::fill_n(size_.data(), num_points, 0);
}

/// Merges two lists on one thread: the k nearest replace the first list.
class MergedLists::Merger {
 public:
  explicit Merger(MergedLists& all)
      : all_(all),
        distance_(static_cast<std::size_t>(all.k_)),
        correlation_(static_cast<std::size_t>(all.k_)),
        index_(static_cast<std::size_t>(all.k_)) {}

  void merge(PointId point, Run found) {
    const std::int64_t first = point.value * all_.k_;
    Run own = {
        all_.distance_.data() + first, all_.index_.data() + first,
        all_.has_correlations() ? all_.correlation_.data() + first : nullptr,
        all_.size_[point.value]};
    std::size_t size = 0;
    for (; size < index_.size() && !(own.over() && found.over()); ++size) {
      // On ties the own list comes first, and a duplicate in the other is
      // skipped.
      Run& next = found.is_nearer(own) ? found : own;
      distance_[size] = next.distance[next.at];
      index_[size] = next.index[next.at];
      if (own.correlation != nullptr)
        correlation_[size] = next.correlation[next.at];
      if (&next == &own && !found.over() &&
          found.index[found.at] == index_[size])
        ++found.at;
      ++next.at;
    }
    std::copy_n(distance_.data(), size, all_.distance_.data() + first);
    std::copy_n(index_.data(), size, all_.index_.data() + first);
    if (own.correlation != nullptr)
      std::copy_n(correlation_.data(), size, all_.correlation_.data() + first);
    all_.size_[point.value] = static_cast<std::int32_t>(size);
  }

 private:
  MergedLists& all_;
  std::vector<double> distance_, correlation_;
  std::vector<std::int32_t> index_;
};

void MergedLists::merge(Block a, Block b, const PartialLists& part,
                        int num_threads) {
  const auto refuse = [] {
    throw std::invalid_argument("these are no lists of those points");
  };
  const auto fits = [&](const Block& block) {
    return block.first >= 0 && block.count >= 0 && block.end() <= num_points_;
  };
  if (!fits(a) || !fits(b) || (b.count > 0 && b.first < a.end()) ||
      part.num_rows != a.count + b.count ||
      (has_correlations() && part.num_entries > 0 &&
       part.correlation == nullptr))
    refuse();
  const auto point_of = [&](std::int64_t row) {
    return PointId{static_cast<std::int32_t>(
        row < a.count ? a.first + row : b.first + row - a.count)};
  };
  std::vector<std::int64_t> first(1, 0);
  first.reserve(static_cast<std::size_t>(part.num_rows) + 1);
  for (std::int64_t r = 0; r < part.num_rows; ++r) {
    if (part.count[r] < 0 || part.count[r] > part.num_entries - first.back())
      refuse();
    first.push_back(first.back() + part.count[r]);
  }
  if (first.back() != part.num_entries) refuse();

  const int threads =
      useful_threads(num_threads, 10.0 * static_cast<double>(part.num_entries));
  const auto each = [&](auto make) {
    run_pieces(num_pieces(part.num_rows), threads, {}, [&] {
      return [&, one = make()](std::int64_t piece) mutable {
        const std::int64_t end = std::min(part.num_rows, (piece + 1) * kRows);
        for (std::int64_t r = piece * kRows; r < end; ++r)
          if (part.count[r] > 0)
            one(r, first[static_cast<std::size_t>(r)], part.count[r]);
      };
    });
  };
  std::atomic<bool> wrong{false};
  each([&] {
    return [&](std::int64_t row, std::int64_t at, std::int64_t size) {
      if (!is_list(part, at, size, point_of(row), num_points_)) wrong = true;
    };
  });
  if (wrong) refuse();
  each([&] {
    return [&, merger = Merger(*this)](std::int64_t row, std::int64_t at,
                                       std::int64_t size) mutable {
      merger.merge(
          point_of(row),
          {part.distance + at, part.index + at,
           part.correlation == nullptr ? nullptr : part.correlation + at,
           size});
    };
  });
}

void MergedLists::emit(const Neighbours& out,
                       const std::vector<std::int64_t>& skip,
                       int num_threads) const {
  if (out.rows != num_points_ ||
      (out.correlation != nullptr && !has_correlations()))
    throw std::invalid_argument("there is no room for these lists");
  const int threads =
      useful_threads(num_threads, 10.0 * static_cast<double>(num_points_ * k_));
  run_pieces(num_pieces(num_points_), threads, {}, [&] {
    return [&](std::int64_t piece) {
      const std::int64_t end = std::min(num_points_, (piece + 1) * kRows);
      for (std::int64_t i = piece * kRows; i < end; ++i) {
        const AnswerRow row = AnswerRow::of(i);
        if (std::binary_search(skip.begin(), skip.end(), i)) {
          emit_missing(out, row, k_);
          continue;
        }
        if (size_[i] < k_) throw RangeFailure();
        std::int64_t to = out.at(row, Rank{0});
        for (std::int64_t e = i * k_; e < (i + 1) * k_; ++e, to += out.step()) {
          out.index[to] = index_[e];
          out.distance[to] = distance_[e];
          if (out.correlation != nullptr) out.correlation[to] = correlation_[e];
        }
      }
    };
  });
}

}  // namespace fsknn
