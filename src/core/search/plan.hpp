#pragma once

// Stage "plan": pure arithmetic that describes the work before it starts. The
// words are those of Arefin 2012. A chunk is a square tile of the distance
// matrix; a split is all chunks in the same rows; a segment is the splits of
// one worker (CPU thread or GPU).

#include <cstdint>
#include <vector>

#include "core/contract/request.hpp"

namespace fsknn {

/// The numbers that a request asks of the filter.
struct AskedNumbers {
  FilterNumbers numbers = FilterNumbers::none;  ///< none: any with those bits
  int bits = 0;                                 ///< 0: chosen automatically

  bool any() const { return bits != 0; }
};

/// The order in which points are compared. A request may set it after the name
/// of an instruction set ("auto/sorted": by keys, "auto/tree",
/// "auto/8/scattered"; a testing aid). GPUs have no order by keys.
enum class AskedOrder { as_it_pays, sorted, tree, scattered };
AskedOrder asked_order(const Request& request);

struct PlanInput {
  std::int64_t num_points = 0;
  /// Points including those left out; 0: none are left out.
  std::int64_t num_given = 0;
  std::int64_t num_features = 0;
  std::int64_t num_queries = 0;  ///< 0: the graph of the points themselves
  std::int64_t k = 0;
  std::int64_t chunk_size = 0;  ///< 0: automatic
  /// The chunks of either side are made larger, so that there are at most so
  /// many; 0: any number.
  std::int64_t most_chunks = 0;
  int num_workers = 1;
  bool correlation = false;  ///< the signed correlation is also returned
  FilterKind filter = FilterKind::product;  ///< as the metric declares
  bool unit_dot = false;        ///< a dot metric of rows of length 1
  bool squares = false;         ///< squared differences of raw rows
  int alleles = 0;              ///< in a sample, for tables of them
  AskedNumbers asked;           ///< asked_numbers()
  bool all_pairs = false;       ///< asked_for_all_pairs()
  bool rows_made = false;       ///< points are made when read, and not held
  bool held = false;            ///< GPUs: points stay for further searches
  double bytes_made_from = 0;   ///< GPUs: bytes on each to make such rows
  bool pairwise = false;        ///< missing values: common samples. CPU
  bool on_disk = false;         ///< points, or queries, are read in blocks
  double max_memory = 0;        ///< bytes for such blocks; 0: no limit
  double bytes_covariates = 0;  ///< of the covariates' basis
  /// The number of points in each group; empty: no groups.
  std::vector<std::int64_t> group_sizes;
  PointGroups::Lists lists = PointGroups::Lists::each;
  AskedOrder order = AskedOrder::as_it_pays;  ///< asked_order()
};

/// In searches over the points of all other groups together, more groups than
/// this have few pairs within a group. So all points are compared as one block,
/// and pairs within a group are skipped.
static constexpr std::size_t kMostGroupsMet = 16;

/// The filter's numbers that follow the name of an instruction set, for tests:
/// by name ("auto/int8") or by bits ("auto/8": 8, 16 or 32). If an engine has
/// no such form, only the bits count. Throws if there are no such numbers.
AskedNumbers asked_numbers(const Request& request);

/// Whether "all" follows it: GPUs then compute all pairs without a filter.
bool asked_for_all_pairs(const Request& request);

/// Whether "hasty" follows it: estimated thresholds are then often wrong, and
/// rows are recomputed.
bool asked_for_haste(const Request& request);

/// The input for a request: on the CPU, with held points.
PlanInput plan_input(const Request& request, std::int64_t num_points,
                     std::int64_t num_features, std::int64_t num_queries);

struct Plan {
  std::int64_t num_points = 0, num_features = 0, num_queries = 0, k = 0;
  std::int64_t chunk_size = 0;
  std::int64_t data_block = 0;        ///< b of Eq. 2
  std::int64_t padded_points = 0;     ///< n' of Eq. 1
  std::int64_t padded_features = 0;   ///< d' of Eq. 2
  std::int64_t padded_queries = 0;    ///< n' of the queries; as points if none
  std::int64_t num_splits = 0;        ///< chunks vertically
  std::int64_t chunks_per_split = 0;  ///< chunks horizontally
  std::int64_t num_segments = 0;
  std::int64_t splits_per_segment = 0;
  std::int64_t num_chunks = 0;  ///< chunks computed: about half, by symmetry
  double num_pairs = 0;         ///< pairs of points in these chunks
  int num_workers = 0;
  bool filtered = false;          ///< GPUs: whether there is a filter
  const char* filter = "";        ///< its name; empty: none
  bool streamed = false;          ///< points do not fit, and are read in pieces
  std::int64_t block_points = 0;  ///< CPU: points per piece; two are held
  std::int64_t num_passes = 1;    ///< GPUs: how often points are read
  double bytes_prepared = 0;      ///< rows in double
  double bytes_filter = 0;        ///< rows in the filter's form
  double bytes_result = 0;   ///< index, distance (and correlation) matrices
  double bytes_working = 0;  ///< neighbour lists, thresholds, order
  double bytes_peak = 0;     ///< all of these, besides the input
  double bytes_host = 0;     ///< GPUs: on the host in addition, for the filter
};

/// The plan of the CPU engine. For a graph by groups it describes one search
/// that compares each two points once. Queries, missing values and data on disk
/// are searched group by group: then the numbers of chunks and pairs are
/// totals, and the rest describes the search that takes the most memory.
Plan plan_cpu(const PlanInput& input);

/// A block-circulant schedule (as CoMet balances its nodes, Joubert et al.
/// 2018). In round delta, split I is paired with split I + delta, modulo the
/// number of splits. So each unordered pair of splits occurs once, and after
/// every round all splits have had equally many partners. With an even number
/// of splits, only the first half takes part in the last round. A piece of work
/// is one split in some successive rounds, so that its rows stay in the cache.
class CirculantSchedule {
 public:
  struct Piece {
    std::int64_t row;
    std::int64_t first_round, end_round;
  };

  CirculantSchedule(std::int64_t num_splits, std::int64_t rounds_per_piece)
      : splits_(num_splits),
        rounds_(num_splits / 2 + 1),
        span_(rounds_per_piece) {}
  std::int64_t num_chunks() const { return splits_ * (splits_ + 1) / 2; }
  std::int64_t num_pieces() const {
    return (rounds_ + span_ - 1) / span_ * splits_;
  }
  Piece piece(std::int64_t at) const {
    const std::int64_t first = at / splits_ * span_;
    const std::int64_t end = first + span_;
    return {at % splits_, first, end < rounds_ ? end : rounds_};
  }
  /// The partner of split `row` in that round, or -1.
  std::int64_t column(std::int64_t row, std::int64_t round) const {
    if (2 * round == splits_ && row >= round) return -1;
    return (row + round) % splits_;
  }

 private:
  std::int64_t splits_, rounds_, span_;
};

}  // namespace fsknn
