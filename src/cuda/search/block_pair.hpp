#pragma once

// Finds the k nearest among the pairs of two blocks, on a device that holds
// both: find_between() of backend.hpp, where memory allows it.
//
// The device holds both sides in doubles and in the filter's form. The filter's
// kernels compare each pair once, for both its points, from thresholds that the
// limits give; the exact step ranks the candidates. Lists that overflowed, and
// all lists of metrics without a filter, are computed by all pairs in doubles.

#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"
#include "core/search/between.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/block_pairs.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/pair_lists.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// The points of the blocks, by rows of the answer, in an order of places: all
/// of one side, shuffled, then all of the other. Alone: one side.
struct Sides {
  /// skip: rows to leave out, ascending.
  Sides(const BlockRows& blocks, const Between& between,
        const std::vector<std::int64_t>& skip);

  bool alone;
  std::int64_t num_columns = 0, num_rows = 0;
  PlacedPoints points;

  bool empty() const {
    return alone ? num_columns < 2 : num_columns == 0 || num_rows == 0;
  }
  std::int64_t size() const { return num_columns + num_rows; }
  double pairs() const {
    const double n = static_cast<double>(num_columns);
    return alone ? n * (n - 1) / 2 : n * static_cast<double>(num_rows);
  }
  /// Returns the largest number of neighbours that a point can have.
  std::int64_t most_neighbours() const {
    return alone ? num_columns - 1 : std::max(num_columns, num_rows);
  }

 private:
  std::int64_t append(std::int64_t first, std::int64_t count,
                      const std::vector<std::int64_t>& skip);
};

/// The work of the device.
struct BlockWork {
  const Request& request;  ///< of the blocks' rows
  const Between& between;
  const Sides& sides;
  RowRecipe prepare;
  DistanceRule rule;
  std::int64_t k;       ///< at most the neighbours of a point
  FilterChoice filter;  ///< none: all pairs in doubles
  int multiprocessors;
  bool correlation;

  std::int64_t num_places() const {
    // A chunk may read beyond its last point.
    return whole_tiles(sides.size()) + kChunkUnit;
  }
  BlockPairs pairs() const { return {sides.num_columns, sides.num_rows}; }
};

/// Returns the bytes that a device holds for it.
double bytes_of(const BlockWork& work);

/// Returns the filter, if one pays; none: all pairs in doubles.
FilterChoice filter_of(const Request& request, const Sides& sides,
                       std::int64_t k, const GpuFacts& facts);

/// Returns the approximate number of pieces of the work, for progress.
std::int64_t num_pieces(const BlockWork& work);

/// Constructed and run on one host thread, whose current device it uses.
class BlockPair {
 public:
  BlockPair(const BlockWork& work, Workers& workers, PairLists& found);
  BlockPair(const BlockPair&) = delete;
  BlockPair& operator=(const BlockPair&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~BlockPair() { cudaStreamSynchronize(stream_.get()); }

  void run();
  const Stats& stats() const { return stats_; }

 private:
  struct Batch;
  FormedPoints formed(const std::vector<std::int32_t>& places);
  bool filter(std::vector<std::int32_t>& left);
  void set_thresholds(const Cut& cut, const SimilarityUnits& units,
                      const std::vector<std::int32_t>& places);
  bool rerank(const CandidateLists& lists,
              const std::vector<std::int32_t>& places,
              std::vector<std::int32_t>& left);
  bool is_short(std::int64_t place, std::int64_t size) const;
  bool in_doubles(const std::vector<std::int32_t>& places, std::int64_t first,
                  std::int64_t count);
  void bring_lists(Batch& batch, const Lists& lists, std::int64_t count,
                   const std::int32_t* row_places, const double* rows,
                   const double* row_sums);
  void take(const Batch& batch, std::int64_t list, std::int64_t place,
            std::int64_t size);
  /// Returns the row of the answer.
  std::int64_t row_at(std::int64_t place) const {
    return work_.sides.points.order.id[static_cast<std::size_t>(place)];
  }

  const BlockWork& work_;
  const MetricEntry& metric_;
  const LastStep undo_;
  Workers& workers_;
  PairLists& found_;
  Stream stream_;
  DevicePoints points_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
