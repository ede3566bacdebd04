#pragma once

// A search for all pairs within a distance: what all its devices work on, and
// how pairs that they found come to the host.

#include <cstdint>
#include <vector>

#include "core/search/within.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/staging.hpp"
#include "cuda/exact/within_pairs.hpp"
#include "cuda/plan/choose_filter.hpp"
#include "cuda/plan/panels.hpp"
#include "cuda/search/pair_chunks.hpp"

namespace fsknn {
namespace cuda {

/// Pairs that travel at a time.
static constexpr std::int64_t kMostFound =
    kPieceBytes / static_cast<std::int64_t>(sizeof(FoundPair));

struct WithinWork : PairsWork {
  /// rows: the same object as columns for a graph.
  WithinWork(const Request& asked, const Within& within,
             const PlacedPoints& of_rows, const PlacedPoints& of_columns,
             int exponent);

  std::vector<double> limits;  ///< by place of rows
  /// By place of columns that are not the rows; empty: they have none.
  std::vector<double> column_limits;
  FilterChoice filter;  ///< where one is used
};

/// Pairs found on one device, and the host's end of their way.
class FoundPairs {
 public:
  explicit FoundPairs(const WithinWork& work);

  FoundPair* data() { return found_.data(); }  ///< device memory, [kMostFound]
  std::int32_t* count() { return count_.data(); }
  void clear_count(const Stream& stream);
  /// What was counted on the stream so far; waits for it.
  std::int32_t counted(const Stream& stream);
  /// The first `count` pairs, once the stream has made them.
  void take(std::int32_t count, WithinCollector& collector,
            WithinCollector::Taker& taker, const Stream& stream);

 private:
  void hand_over(std::int64_t first, std::int64_t end,
                 WithinCollector::Taker& taker);
  const FoundPair* on_host() {
    return reinterpret_cast<const FoundPair*>(pieces_[0]);
  }

  const WithinWork& work_;
  DeviceBuffer<FoundPair> found_;
  DeviceBuffer<std::int32_t> count_;
  PinnedPieces pieces_;
};

}  // namespace cuda
}  // namespace fsknn
