#pragma once

// A search for all pairs within a distance: the inputs of all its devices, and
// the transfer of their pairs to the host.

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

/// Pairs in transfer at a time.
static constexpr std::int64_t kMostFound =
    kPieceBytes / static_cast<std::int64_t>(sizeof(FoundPair));

struct WithinWork : PairsWork {
  /// rows: the same object as columns for a graph.
  WithinWork(const Request& asked, const Within& within,
             const PlacedPoints& of_rows, const PlacedPoints& of_columns,
             int exponent);

  std::vector<double> limits;  ///< by place of rows
  /// By place of columns that are not the rows; empty: they have no limits.
  std::vector<double> column_limits;
  FilterChoice filter;  ///< where one is used
};

/// The limits and the pairs found on one device, and the transfer of these to
/// the host.
class FoundPairs {
 public:
  /// Waits for the stream.
  FoundPairs(const WithinWork& work, const Stream& stream);

  /// Its capacity is kMostFound.
  PairsWithin view() const { return view_; }
  void clear_count(const Stream& stream);
  /// Returns the count so far on the stream, for which it waits.
  std::int32_t counted(const Stream& stream);
  /// Takes the first `count` pairs, once the stream has found them.
  void take(std::int32_t count, WithinCollector& collector,
            WithinCollector::Taker& taker, const Stream& stream);

 private:
  void hand_over(std::int64_t first, std::int64_t end,
                 WithinCollector::Taker& taker);
  const FoundPair* on_host() {
    return reinterpret_cast<const FoundPair*>(pieces_[0]);
  }

  const WithinWork& work_;
  DeviceBuffer<double> limits_, column_limits_;  ///< by place
  DeviceBuffer<FoundPair> found_;
  DeviceBuffer<std::int32_t> count_;
  PairsWithin view_;
  PinnedPieces pieces_;
};

}  // namespace cuda
}  // namespace fsknn
