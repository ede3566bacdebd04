#pragma once

// The k nearest among the pairs of two blocks, on a device that holds both:
// find_between() of backend.hpp, where there is room.
//
// Both sides are there in doubles and in the filter's form. Its kernels meet
// each pair once, for both its points, from thresholds that the limits give;
// the exact step ranks what is left. Lists that overflowed, and all of metrics
// without a filter, are done by all pairs in doubles.

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
  /// skip: rows that are left out, ascending.
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
  /// As many neighbours as any point can have.
  std::int64_t most_neighbours() const {
    return alone ? num_columns - 1 : std::max(num_columns, num_rows);
  }

 private:
  std::int64_t append(std::int64_t first, std::int64_t count,
                      const std::vector<std::int64_t>& skip);
};

/// What is to be done on the device.
struct BlockWork {
  const Request& request;  ///< of the blocks' rows
  const Between& between;
  const Sides& sides;
  RowRecipe prepare;
  DistanceRule rule;
  std::int64_t k;       ///< no more than a point can have
  FilterChoice filter;  ///< none: all pairs in doubles
  int multiprocessors;
  bool correlation;

  std::int64_t num_places() const {
    // What a chunk reads beyond its last point is there.
    return whole_tiles(sides.size()) + kChunkUnit;
  }
  BlockPairs pairs() const { return {sides.num_columns, sides.num_rows}; }
};

/// What a device holds for it.
double bytes_of(const BlockWork& work);

/// The filter, where one pays; none: all pairs in doubles.
FilterChoice filter_of(const Request& request, const Sides& sides,
                       std::int64_t k, const GpuFacts& facts);

/// Pieces of the work, by which progress is told, about.
std::int64_t num_pieces(const BlockWork& work);

/// Made and run on one host thread, whose current device it uses.
class BlockPair {
 public:
  BlockPair(const BlockWork& work, Workers& workers, PairLists& found);
  BlockPair(const BlockPair&) = delete;
  BlockPair& operator=(const BlockPair&) = delete;
  /// After a failure, what is under way still uses the buffers.
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
  /// Of the answer.
  std::int64_t row_at(std::int64_t place) const {
    return work_.sides.points.order.id[static_cast<std::size_t>(place)];
  }

  const BlockWork& work_;
  const MetricEntry& metric_;
  const PowerOfTwo undo_;
  Workers& workers_;
  PairLists& found_;
  Stream stream_;
  DevicePoints points_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
