#include "cpu/search/tree.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "cpu/search/keys.hpp"

namespace fsknn {
namespace cpu {
namespace {

// A node's feature is chosen by this many values, of some of its points. Fewer
// points of many features suffice: none of these features decides alone.
constexpr std::int64_t kValues = 1 << 14;
constexpr std::int64_t kLeastSampled = 32, kMostSampled = 256;

/// Some consecutive points of the order.
struct Node {
  std::int64_t begin, end;
  std::vector<std::size_t> wanted;  ///< the numbers of the points looked for
  std::int64_t size() const { return end - begin; }
};

/// The number of points in the first half of a node; 0: it is a leaf.
std::int64_t half_of(std::int64_t size) {
  std::int64_t unit = Tile::rows;
  if (size > Tile::columns) unit = Tile::columns;
  if (size > 2 * kStratum) unit = kStratum;
  if (size <= unit) return 0;
  return std::max((size / 2 + unit / 2) / unit, std::int64_t{1}) * unit;
}

/// Halves nodes, on one thread.
class Halver {
 public:
  Halver(const PreparedPoints& points, std::vector<std::int32_t>& order)
      : points_(points),
        order_(order),
        sum_(static_cast<std::size_t>(points.padded)),
        squares_(static_cast<std::size_t>(points.padded)) {}

  /// Puts the points of the first half first. before(place) then says whether a
  /// point of the node is among them.
  void halve(const Node& node, std::int64_t half) {
    feature_ = widest(node);
    keys_.resize(static_cast<std::size_t>(node.size()));
    std::int32_t* const order = order_.data() + node.begin;
    for (std::size_t p = 0; p < keys_.size(); ++p) {
      // The rows of later keys are read from memory meanwhile.
      const std::size_t later = std::min(p + kAhead, keys_.size() - 1);
      __builtin_prefetch(points_.row(Place{order[later]}) + feature_);
      keys_[p] = key_of(Place{order[p]});
    }
    std::nth_element(keys_.begin(), keys_.begin() + half, keys_.end());
    for (std::size_t p = 0; p < keys_.size(); ++p) order[p] = keys_[p].place;
    middle_ = keys_[static_cast<std::size_t>(half)];
  }
  bool before(Place place) const { return key_of(place) < middle_; }

 private:
  static constexpr std::size_t kAhead = 16;
  struct Key {
    float value;  ///< rounding may only move a point to the other half
    std::int32_t place;
    bool operator<(const Key& other) const {
      return value < other.value ||
             (value == other.value && place < other.place);
    }
  };
  Key key_of(Place place) const {
    return {static_cast<float>(points_.row(place)[feature_]),
            static_cast<std::int32_t>(place.value)};
  }
  /// The feature with the largest variance in a sample of the node.
  std::int64_t widest(const Node& node) {
    const std::int64_t looked = std::min(
        kMostSampled, std::max(kLeastSampled, kValues / points_.padded));
    const std::int64_t count = std::min(looked, node.size());
    const double* const first = row_of(node, 0);
    std::fill(sum_.begin(), sum_.end(), 0.0);
    std::fill(squares_.begin(), squares_.end(), 0.0);
    for (std::int64_t i = 1; i < count; ++i) {
      const double* const row = row_of(node, i * node.size() / count);
      for (std::size_t f = 0; f < sum_.size(); ++f) {
        const double x = row[f] - first[f];
        sum_[f] += x;
        squares_[f] += x * x;
      }
    }
    std::int64_t best = 0;
    double most = 0.0;
    for (std::size_t f = 0; f < sum_.size(); ++f) {
      const double variance =
          squares_[f] - sum_[f] * sum_[f] / static_cast<double>(count);
      if (!(variance > most)) continue;
      most = variance;
      best = static_cast<std::int64_t>(f);
    }
    return best;
  }
  const double* row_of(const Node& node, std::int64_t at) const {
    return points_.row(
        Place{order_[static_cast<std::size_t>(node.begin + at)]});
  }

  const PreparedPoints& points_;
  std::vector<std::int32_t>& order_;
  std::vector<double> sum_, squares_;
  std::vector<Key> keys_;
  std::int64_t feature_ = 0;
  Key middle_ = {};
};

/// Halves the root, and then its parts, until `is_leaf`. Returns the leaves.
template <class IsLeaf>
std::vector<Node> grow(const PreparedPoints& points, Node root,
                       const std::vector<Place>& of,
                       std::vector<std::int32_t>& order, int num_threads,
                       IsLeaf is_leaf) {
  // Once there are this many nodes, each is a piece of work to its end.
  constexpr std::size_t kPieces = 64;
  const auto halve = [&](Halver& halver, Node node, std::vector<Node>& parts,
                         std::vector<Node>& leaves) {
    const std::int64_t half = is_leaf(node) ? 0 : half_of(node.size());
    if (half == 0) return leaves.push_back(std::move(node));
    halver.halve(node, half);
    const auto middle =
        std::partition(node.wanted.begin(), node.wanted.end(),
                       [&](std::size_t at) { return halver.before(of[at]); });
    const std::int64_t at = node.begin + half;
    parts.push_back({node.begin, at, {node.wanted.begin(), middle}});
    parts.push_back({at, node.end, {middle, node.wanted.end()}});
  };
  /// The result of a piece.
  struct Halved {
    std::vector<Node> parts, leaves;
  };
  std::vector<Node> nodes = {std::move(root)}, leaves;
  for (bool last = false; !nodes.empty();) {
    last = nodes.size() >= kPieces;
    std::vector<Halved> halved(nodes.size());
    run_pieces(static_cast<std::int64_t>(nodes.size()), num_threads, {}, [&] {
      return [&, halver = Halver(points, order)](std::int64_t piece) mutable {
        const std::size_t at = static_cast<std::size_t>(piece);
        Halved& to = halved[at];
        to.parts.push_back(std::move(nodes[at]));
        do {
          Node node = std::move(to.parts.back());
          to.parts.pop_back();
          poll_after(30.0 * static_cast<double>(node.size()));
          halve(halver, std::move(node), to.parts, to.leaves);
        } while (last && !to.parts.empty());
      };
    });
    nodes.clear();
    for (Halved& of_node : halved) {
      std::move(of_node.parts.begin(), of_node.parts.end(),
                std::back_inserter(nodes));
      std::move(of_node.leaves.begin(), of_node.leaves.end(),
                std::back_inserter(leaves));
    }
  }
  return leaves;
}

}  // namespace

std::vector<std::int32_t> all_places(const PreparedPoints& points) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(points.size()));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

std::vector<std::int32_t> tree_order(const PreparedPoints& points,
                                     int num_threads) {
  return tree_order(points, all_places(points), num_threads);
}

std::vector<std::int32_t> tree_order(const PreparedPoints& points,
                                     std::vector<std::int32_t> places,
                                     int num_threads) {
  const Node root = {0, static_cast<std::int64_t>(places.size()), {}};
  grow(points, root, {}, places, num_threads,
       [](const Node&) { return false; });
  return places;
}

std::vector<TreeTiles> tree_tiles(const PreparedPoints& points,
                                  std::vector<std::int32_t> places,
                                  const std::vector<Place>& of,
                                  int num_threads) {
  std::vector<std::int32_t>& order = places;
  const std::int64_t size = static_cast<std::int64_t>(places.size());
  Node root = {0, size, {}};
  for (std::size_t at = 0; at < of.size(); ++at) root.wanted.push_back(at);
  std::vector<TreeTiles> found(of.size());
  for (const Node& leaf :
       grow(points, std::move(root), of, order, num_threads,
            [](const Node& node) { return node.wanted.empty(); }))
    for (const std::size_t at : leaf.wanted) {
      // A leaf is a tile of rows, and halves are whole tiles of columns.
      const std::int64_t first = leaf.begin / Tile::columns * Tile::columns;
      const std::int64_t end = std::min(first + Tile::columns, size);
      found[at].rows.assign(order.begin() + leaf.begin,
                            order.begin() + leaf.end);
      found[at].columns.assign(order.begin() + first, order.begin() + end);
    }
  return found;
}

void rearrange(PreparedPoints& points,
               const std::vector<std::int32_t>& place_at, int num_threads) {
  const std::size_t n = place_at.size();
  // Each thread moves some features of all rows, along the cycles of the
  // permutation.
  const std::int64_t padded = points.padded;
  const std::int64_t width =
      (padded / kLanes + num_threads - 1) / num_threads * kLanes;
  run_pieces((padded + width - 1) / width, num_threads, {}, [&] {
    return [&, kept = std::vector<double>(static_cast<std::size_t>(width)),
            done = std::vector<bool>(n)](std::int64_t piece) mutable {
      const std::int64_t from = piece * width;
      const std::int64_t count = std::min(width, padded - from);
      double* const rows = points.rows.data() + from;
      std::fill(done.begin(), done.end(), false);
      for (std::size_t first = 0; first < n; ++first) {
        if (done[first]) continue;
        std::copy_n(rows + static_cast<std::int64_t>(first) * padded, count,
                    kept.data());
        for (std::size_t at = first;;) {
          done[at] = true;
          double* const to = rows + static_cast<std::int64_t>(at) * padded;
          const std::size_t next = static_cast<std::size_t>(place_at[at]);
          if (next == first) {
            std::copy_n(kept.data(), count, to);
            break;
          }
          std::copy_n(rows + static_cast<std::int64_t>(next) * padded, count,
                      to);
          at = next;
        }
      }
    };
  });
  const std::vector<std::int32_t> id = points.order.id;
  Buffer<double> sums(points.sums.size());
  for (std::size_t at = 0; at < n; ++at) {
    const std::size_t from = static_cast<std::size_t>(place_at[at]);
    points.order.id[at] = id[from];
    points.order.place[static_cast<std::size_t>(id[from])] =
        static_cast<std::int32_t>(at);
    sums[static_cast<std::int64_t>(at)] =
        points.sums[static_cast<std::int64_t>(from)];
  }
  points.sums = std::move(sums);
}

}  // namespace cpu
}  // namespace fsknn
