#include "core/graph/spanning.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"

namespace fsknn {

Components::Components(std::int64_t num_points)
    : parent_(static_cast<std::size_t>(num_points)),
      size_(static_cast<std::size_t>(num_points), 1) {
  std::iota(parent_.begin(), parent_.end(), 0);
}

bool Components::join(std::int32_t i, std::int32_t j) {
  std::size_t a = static_cast<std::size_t>(find(i));
  std::size_t b = static_cast<std::size_t>(find(j));
  if (a == b) return false;
  if (size_[a] < size_[b]) std::swap(a, b);
  parent_[b] = static_cast<std::int32_t>(a);
  size_[a] += size_[b];
  return true;
}

namespace {

/// Grows one tree. In each round a component adds the shortest edge that leaves
/// it, if its points' lists are long enough to prove that. If no component
/// knows its own, all but the largest are searched. At least as many components
/// disappear, so there are at most log2(n) such rounds. By then every component
/// has more points than the lists are long.
class Boruvka {
 public:
  Boruvka(const NearLists& lists, Outside& outside)
      : lists_(lists),
        outside_(outside),
        joined_(lists.num_points()),
        next_(lists.start.begin(), lists.start.end() - 1),
        component_(static_cast<std::size_t>(lists.num_points())) {}

  std::vector<TreeEdge> run() {
    while (label() > 1) {
      scan_lists();
      if (!take_known()) search();
    }
    std::sort(tree_.begin(), tree_.end(), shorter);
    return std::move(tree_);
  }

 private:
  std::int32_t label() {
    std::vector<std::int32_t> number(component_.size(), -1);
    size_.clear();
    for (std::int32_t i = 0; i < lists_.num_points(); ++i) {
      poll_after(50.0);
      std::int32_t& own = component_[static_cast<std::size_t>(i)];
      own = -1;
      if (lists_.empty(i)) continue;
      std::int32_t& label = number[static_cast<std::size_t>(joined_.find(i))];
      if (label < 0) {
        label = static_cast<std::int32_t>(size_.size());
        size_.push_back(0);
      }
      own = label;
      ++size_[static_cast<std::size_t>(label)];
    }
    return static_cast<std::int32_t>(size_.size());
  }

  std::size_t component(std::int32_t i) const {
    return static_cast<std::size_t>(component_[static_cast<std::size_t>(i)]);
  }
  bool exhausted(std::int32_t i) const {
    return next_[static_cast<std::size_t>(i)] ==
           lists_.start[static_cast<std::size_t>(i) + 1];
  }
  /// A lower bound of the edges from i to points that are not in its list.
  TreeEdge bound(std::int32_t i) const {
    const std::int64_t last = lists_.start[static_cast<std::size_t>(i) + 1] - 1;
    return edge_between(lists_.distance[last], i, lists_.index[last] + 1);
  }

  /// best_: the shortest leaving edge in any list. bound_: a lower bound of the
  /// edges that are not in a list.
  void scan_lists() {
    best_.assign(size_.size(), TreeEdge());
    bound_.assign(size_.size(), TreeEdge());
    for (std::int32_t i = 0; i < lists_.num_points(); ++i) {
      if (lists_.empty(i)) continue;
      poll_after(50.0);
      const std::size_t own = component(i);
      std::int64_t& at = next_[static_cast<std::size_t>(i)];
      const std::int64_t end = lists_.start[static_cast<std::size_t>(i) + 1];
      while (at < end && component(lists_.index[at]) == own) ++at;
      if (at == end) {
        bound_[own] = std::min(bound_[own], bound(i), shorter);
        continue;
      }
      const TreeEdge leaving =
          edge_between(lists_.distance[at], i, lists_.index[at]);
      const std::size_t other = component(lists_.index[at]);
      best_[own] = std::min(best_[own], leaving, shorter);
      best_[other] = std::min(best_[other], leaving, shorter);
    }
  }

  void take(const TreeEdge& edge) {
    if (edge.is_none() || !is_in_range(edge.distance)) throw RangeFailure();
    if (joined_.join(edge.low, edge.high)) tree_.push_back(edge);
  }

  bool take_known() {
    bool any = false;
    for (std::size_t c = 0; c < size_.size(); ++c) {
      if (best_[c].is_none() || shorter(bound_[c], best_[c])) continue;
      take(best_[c]);
      any = true;
    }
    return any;
  }

  void search() {
    const std::size_t largest = static_cast<std::size_t>(
        std::max_element(size_.begin(), size_.end()) - size_.begin());
    std::vector<char> wanted(component_.size(), 0);
    for (std::int32_t i = 0; i < lists_.num_points(); ++i)
      wanted[static_cast<std::size_t>(i)] =
          !lists_.empty(i) && component(i) != largest && exhausted(i) &&
          shorter(bound(i), best_[component(i)]);
    outside_.lower(component_, wanted, best_);
    for (std::size_t c = 0; c < size_.size(); ++c)
      if (c != largest) take(best_[c]);
  }

  const NearLists& lists_;
  Outside& outside_;
  Components joined_;
  std::vector<std::int64_t> next_;  ///< the first entry that may be outside
  std::vector<std::int32_t> component_;
  std::vector<std::int64_t> size_;
  std::vector<TreeEdge> best_, bound_, tree_;
};

}  // namespace

std::vector<TreeEdge> spanning_tree(const NearLists& lists, Outside& outside) {
  return Boruvka(lists, outside).run();
}

}  // namespace fsknn
