#include "core/graph/cut.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

struct Component {
  std::vector<std::int32_t> members;  ///< ascending
  std::vector<std::int32_t> edges;    ///< positions in the forest
  std::int64_t k = 0;  ///< its edges are known to pass for this k
};

enum class Verdict { near, far, unknown };

class Cutter {
 public:
  Cutter(const std::vector<TreeEdge>& forest, const NearLists& lists,
         std::int64_t most, const Ranks* beyond, int num_threads,
         Progress* progress)
      : forest_(forest),
        lists_(lists),
        most_(most),
        beyond_(beyond),
        num_threads_(num_threads),
        progress_(progress),
        label_(static_cast<std::size_t>(lists.num_points()), -1) {
    cut_.kept.assign(forest.size(), 1);
  }

  Cut run() {
    Component all;
    all.members.resize(label_.size());
    std::iota(all.members.begin(), all.members.end(), 0);
    all.edges.resize(forest_.size());
    std::iota(all.edges.begin(), all.edges.end(), 0);
    std::vector<Component> open;
    split(all, open);
    while (!open.empty()) open = round(open);
    number();
    return std::move(cut_);
  }

 private:
  /// Tests all edges of some components; returns the parts of those that split.
  std::vector<Component> round(std::vector<Component>& open) {
    std::vector<Question> questions;
    for (std::size_t c = 0; c < open.size(); ++c)
      for (const std::int32_t i : open[c].members)
        label_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(c);
    for (std::size_t c = 0; c < open.size(); ++c) {
      open[c].k =
          near_ranks(static_cast<std::int64_t>(open[c].members.size()), most_);
      for (const std::int32_t e : open[c].edges) {
        poll_after(200.0);
        const Verdict verdict = by_lists(e, open[c].k);
        cut_.kept[static_cast<std::size_t>(e)] = verdict == Verdict::near;
        if (verdict == Verdict::unknown) questions.push_back({e, &open[c]});
      }
    }
    ask(questions);
    std::vector<Component> next;
    for (Component& c : open) {
      const std::size_t before = c.edges.size();
      c.edges.erase(
          std::remove_if(c.edges.begin(), c.edges.end(),
                         [&](std::int32_t e) {
                           return !cut_.kept[static_cast<std::size_t>(e)];
                         }),
          c.edges.end());
      if (c.edges.size() < before)
        split(c, next);
      else
        closed_.push_back(std::move(c.members));
    }
    return next;
  }

  /// Whether `to` is among the k nearest of `from` within its component.
  Verdict by_list(std::int32_t from, std::int32_t to, std::int64_t k) const {
    const std::int32_t own = label_[static_cast<std::size_t>(from)];
    const std::int64_t end = lists_.start[static_cast<std::size_t>(from) + 1];
    std::int64_t nearer = 0;
    for (std::int64_t at = lists_.start[static_cast<std::size_t>(from)];
         at < end; ++at) {
      if (lists_.index[at] == to) return Verdict::near;
      nearer += label_[static_cast<std::size_t>(lists_.index[at])] == own;
      if (nearer >= k) return Verdict::far;
    }
    return beyond_ != nullptr ? Verdict::unknown : Verdict::far;
  }

  Verdict by_lists(std::int32_t e, std::int64_t k) const {
    const TreeEdge& edge = forest_[static_cast<std::size_t>(e)];
    const Verdict up = by_list(edge.low, edge.high, k);
    if (up == Verdict::near) return up;
    const Verdict down = by_list(edge.high, edge.low, k);
    return down == Verdict::far ? up : down;
  }

  struct Question {
    std::int32_t edge;
    const Component* component;
  };

  void ask(const std::vector<Question>& questions) {
    // `kept` has a byte per edge, so that threads can write without races.
    run_pieces(static_cast<std::int64_t>(questions.size()), num_threads_,
               {progress_, 1.0, 1.0}, [&] {
                 return [&](std::int64_t at) {
                   const Question& q = questions[static_cast<std::size_t>(at)];
                   cut_.kept[static_cast<std::size_t>(q.edge)] = answer(q);
                 };
               });
  }

  bool answer(const Question& q) const {
    const TreeEdge& edge = forest_[static_cast<std::size_t>(q.edge)];
    const std::int64_t k = q.component->k;
    for (const auto& end : {std::make_pair(edge.low, edge.high),
                            std::make_pair(edge.high, edge.low)})
      if (by_list(end.first, end.second, k) == Verdict::unknown &&
          beyond_->is_near(end.first, edge, k, q.component->members))
        return true;
    return false;
  }

  /// Finds the connected parts of a component. Those that need another test are
  /// added to `open`; the others are final.
  void split(const Component& whole, std::vector<Component>& open) {
    const std::size_t size = whole.members.size();
    Components joined(static_cast<std::int64_t>(size));
    const auto local = [&](std::int32_t point) {
      return static_cast<std::int32_t>(
          std::lower_bound(whole.members.begin(), whole.members.end(), point) -
          whole.members.begin());
    };
    std::vector<std::int32_t> low(whole.edges.size());
    for (std::size_t e = 0; e < whole.edges.size(); ++e) {
      poll_after(200.0);
      const TreeEdge& edge = forest_[static_cast<std::size_t>(whole.edges[e])];
      low[e] = local(edge.low);
      joined.join(low[e], local(edge.high));
    }
    std::vector<std::int32_t> number(size, -1);
    std::vector<Component> pieces;
    const auto piece_of = [&](std::int32_t member) -> Component& {
      std::int32_t& at = number[static_cast<std::size_t>(joined.find(member))];
      if (at < 0) {
        at = static_cast<std::int32_t>(pieces.size());
        pieces.emplace_back();
      }
      return pieces[static_cast<std::size_t>(at)];
    };
    for (std::size_t m = 0; m < size; ++m)
      piece_of(static_cast<std::int32_t>(m))
          .members.push_back(whole.members[m]);
    for (std::size_t e = 0; e < low.size(); ++e)
      piece_of(low[e]).edges.push_back(whole.edges[e]);
    for (Component& piece : pieces) {
      const std::int64_t count =
          static_cast<std::int64_t>(piece.members.size());
      if (count > 2 && near_ranks(count, most_) != whole.k)
        open.push_back(std::move(piece));
      else
        closed_.push_back(std::move(piece.members));
    }
  }

  void number() {
    std::sort(closed_.begin(), closed_.end(),
              [](const std::vector<std::int32_t>& a,
                 const std::vector<std::int32_t>& b) {
                return a.size() != b.size() ? a.size() > b.size()
                                            : a.front() < b.front();
              });
    cut_.cluster.resize(label_.size());
    for (std::size_t c = 0; c < closed_.size(); ++c)
      for (const std::int32_t i : closed_[c])
        cut_.cluster[static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(c);
  }

  const std::vector<TreeEdge>& forest_;
  const NearLists& lists_;
  const std::int64_t most_;
  const Ranks* beyond_;
  int num_threads_;
  Progress* progress_;
  std::vector<std::int32_t> label_;
  std::vector<std::vector<std::int32_t>> closed_;
  Cut cut_;
};

}  // namespace

std::int64_t near_ranks(std::int64_t num_members, std::int64_t most) {
  const double ranks = std::floor(std::log(static_cast<double>(num_members)));
  return std::max<std::int64_t>(
      1, std::min(static_cast<std::int64_t>(ranks), most));
}

Cut cut_forest(const std::vector<TreeEdge>& forest, const NearLists& lists,
               std::int64_t most, const Ranks* beyond, int num_threads,
               Progress* progress) {
  return Cutter(forest, lists, most, beyond, num_threads, progress).run();
}

}  // namespace fsknn
