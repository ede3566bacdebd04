#pragma once

// The last phase of a graph whose points come in panels
// (graph_by_filter_panels.hpp): it computes candidates' distances while their
// rows are present, and writes the nearest.

#include <cstdint>
#include <vector>

#include "cuda/exact/answer.hpp"
#include "cuda/search/filter_phase.hpp"

namespace fsknn {
namespace cuda {

/// The candidates of a device's owned points, which are identified by their
/// rows in the order of the user's numbers.
struct Unranked {
  WaitingList pairs;  ///< of all of them
  /// For points that were filtered again (ascending): they replace their empty
  /// lists.
  std::vector<std::int32_t> wide_own;
  WaitingList wide_pairs;
  /// For points that were computed in doubles (ascending).
  std::vector<std::int64_t> redone;
  RowsInDoubles redone_lists;
};

class RerankPhase {
 public:
  RerankPhase(const PanelsPart& part, Unranked& unranked);
  RerankPhase(const RerankPhase&) = delete;
  RerankPhase& operator=(const RerankPhase&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~RerankPhase();

  /// As many points as fit stay, and all later ones pass in panels; then the
  /// next points stay. Each pair of panels is used once, for both its sides.
  /// Waits for the stream. Returns whether to continue.
  bool run();

  double seconds_emit() const { return answer_.seconds(); }

 private:
  bool rerank(const Panel& panel);
  void write_out(const Panel& panel);
  void start_ranking_all(const Ranking& ranking);
  void send_redone(const Ranking& ranking);

  const PanelsPart& part_;
  Unranked& unranked_;
  DeviceBuffer<std::int32_t> panel_ids_, wide_own_;
  PanelBuffer stay_;
  /// Memory for lists to write, this many rows at a time. It is that of the
  /// points that stay, which are no longer needed, or own_lists_ if that is too
  /// small.
  const std::int64_t write_rows_;
  DeviceBuffer<double> own_lists_;
  AnswerWriter answer_;
};

}  // namespace cuda
}  // namespace fsknn
