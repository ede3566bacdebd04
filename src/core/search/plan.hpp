#pragma once

// Stage "plan": pure arithmetic. What the work will be, before any of it.
// Words as in Arefin 2012: a chunk is a square tile of the distance matrix; a
// split, all chunks that share the same rows; a segment, the splits that one
// worker (CPU thread or GPU) does.

#include <cstdint>
#include <vector>

#include "core/contract/request.hpp"

namespace fsknn {

/// The numbers that a filter is to have.
struct AskedNumbers {
  FilterNumbers numbers = FilterNumbers::none;  ///< none: any of those bits
  int bits = 0;                                 ///< 0: as it pays

  bool any() const { return bits != 0; }
};

struct PlanInput {
  std::int64_t num_points = 0;
  /// Those and the points that are left out; 0: none are.
  std::int64_t num_given = 0;
  std::int64_t num_features = 0;
  std::int64_t num_queries = 0;  ///< 0: the graph of the points themselves
  std::int64_t k = 0;
  std::int64_t chunk_size = 0;  ///< 0: automatic
  int num_workers = 1;
  bool correlation = false;  ///< the signed correlation is returned too
  FilterKind filter = FilterKind::product;  ///< as the metric declares
  bool unit_dot = false;        ///< a dot metric of rows of length 1
  bool squares = false;         ///< of squared differences of raw rows
  AskedNumbers asked;           ///< asked_numbers()
  bool all_pairs = false;       ///< asked_for_all_pairs()
  bool rows_made = false;       ///< points are made when read, and not held
  double bytes_made_from = 0;   ///< GPUs: what such are made of, on each
  bool pairwise = false;        ///< values are missing: common samples. CPU
  bool on_disk = false;         ///< points, or queries, come by blocks
  double max_memory = 0;        ///< bytes for such blocks; 0: no limit
  double bytes_covariates = 0;  ///< of the basis that rows are rid of
  /// Points of each group; empty: there are none.
  std::vector<std::int64_t> group_sizes;
  PointGroups::Lists lists = PointGroups::Lists::each;
};

/// Of more groups few pairs are of one: together they are met as one block, and
/// pairs of one group are passed over.
static constexpr std::size_t kMostGroupsMet = 16;

/// The filter's numbers as asked for behind the name of an instruction set, a
/// testing aid: by their name ("auto/int8"), or by their bits ("auto/8": 8, 16
/// or 32), whichever they are. What an engine has no such form of is as if
/// its bits were asked for. Throws where there are no such numbers.
AskedNumbers asked_numbers(const Request& request);

/// Whether "all" is asked for there: GPUs filter nothing, and meet all pairs.
bool asked_for_all_pairs(const Request& request);

/// Whether "hasty" is: what is guessed is often wrong, and rows done again.
bool asked_for_haste(const Request& request);

/// What a request says of it: on the CPU, for points that are held.
PlanInput plan_input(const Request& request, std::int64_t num_points,
                     std::int64_t num_features, std::int64_t num_queries);

struct Plan {
  std::int64_t num_points = 0, num_features = 0, num_queries = 0, k = 0;
  std::int64_t chunk_size = 0;
  std::int64_t data_block = 0;        ///< b of Eq. 2
  std::int64_t padded_points = 0;     ///< n' of Eq. 1
  std::int64_t padded_features = 0;   ///< d' of Eq. 2
  std::int64_t padded_queries = 0;    ///< n' of the queries; as points if none
  std::int64_t num_splits = 0;        ///< chunks down
  std::int64_t chunks_per_split = 0;  ///< chunks across
  std::int64_t num_segments = 0;
  std::int64_t splits_per_segment = 0;
  std::int64_t num_chunks = 0;  ///< computed: about half, by symmetry
  double num_pairs = 0;         ///< of points in them
  int num_workers = 0;
  bool filtered = false;          ///< GPUs: by a filter
  const char* filter = "";        ///< which, in words; empty: none
  bool streamed = false;          ///< points do not fit, and come in pieces
  std::int64_t block_points = 0;  ///< CPU: of a piece; two are there at a time
  std::int64_t num_passes = 1;    ///< GPUs: times that points are read
  double bytes_prepared = 0;      ///< rows in double
  double bytes_filter = 0;        ///< rows in the filter's form
  double bytes_result = 0;   ///< index, distance (and correlation) matrices
  double bytes_working = 0;  ///< neighbour lists, thresholds, order
  double bytes_peak = 0;     ///< all of these, besides the input
  double bytes_host = 0;     ///< GPUs: of the host's besides, for the filter
};

/// The plan of the CPU engine. By groups it is that of one search in which each
/// two points meet once, or, of queries, with missing values and of data on
/// disk, of one search after another: then numbers of chunks and pairs are of
/// all of them, and the rest is of the one that takes the most memory.
Plan plan_cpu(const PlanInput& input);

/// Block-circulant schedule (as CoMet balances its nodes, Joubert et al. 2018):
/// in round delta, split I meets split I + delta (mod the number of splits), so
/// that each unordered pair of splits is met once and after every round each
/// split has met equally many. With an even number of splits the last round is
/// met by its first half only. A piece of work is one split in some successive
/// rounds: what belongs to its rows stays in the cache.
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
  /// The split that `row` meets in that round, or -1.
  std::int64_t column(std::int64_t row, std::int64_t round) const {
    if (2 * round == splits_ && row >= round) return -1;
    return (row + round) % splits_;
  }

 private:
  std::int64_t splits_, rounds_, span_;
};

}  // namespace fsknn
