#pragma once

// Rows of a streamed graph whose candidates overflowed, by longer lists.

#include <cstdint>
#include <vector>

#include "cuda/prepare/panel_stream.cuh"
#include "cuda/search/redo.cuh"

namespace fsknn {
namespace cuda {

/// Finds candidates that wait for the exact step, as those of all other rows do.
/// Used while the filter's rows are still there.
class StreamedWide {
 public:
  /// Rows are prepared again, in `panel`.
  StreamedWide(const WideFilter::Search& search, PanelStream& from,
               PanelBuffer& panel, const Stream& stream, std::int64_t num_rows)
      : k_(search.k),
        from_(from),
        panel_(panel),
        stream_(stream),
        filter_(search, stream, num_rows) {}

  /// Rows by their slots, places and numbers (these ascending).
  struct Rows {
    std::vector<std::int32_t> slots, places, ids;
  };
  /// slot_ranks [column slots], device memory. Waits for the stream. Returns
  /// whether to go on.
  bool run(const Rows& rows, const std::int32_t* slot_ranks);

  /// Of each row: its candidates; 0 where there are too many of them.
  const std::vector<std::int32_t>& counts() const { return counts_; }
  /// Their ranks, one row after the other.
  const std::vector<std::int32_t>& columns() const { return columns_; }

 private:
  bool batch(const Rows& rows, std::size_t first, std::int64_t count,
             const std::int32_t* slot_ranks);

  const std::int64_t k_;
  PanelStream& from_;
  PanelBuffer& panel_;
  const Stream& stream_;
  WideFilter filter_;
  std::vector<std::int32_t> counts_, columns_;
};

}  // namespace cuda
}  // namespace fsknn
