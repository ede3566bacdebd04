#pragma once

// The last phase of a graph whose points come in panels
// (graph_by_filter_panels.hpp): candidates become distances as their rows come
// by, and the nearest of them are written out.

#include <cstdint>
#include <vector>

#include "cuda/exact/answer.hpp"
#include "cuda/search/filter_phase.hpp"

namespace fsknn {
namespace cuda {

/// What is to be reranked of a device's owned points, which are meant by their
/// rows in the order of the user's numbers.
struct Unranked {
  WaitingList pairs;  ///< of all of them
  /// Of those that were filtered again (ascending): over their empty lists.
  std::vector<std::int32_t> wide_own;
  WaitingList wide_pairs;
  /// Of those that were done in doubles (ascending).
  std::vector<std::int64_t> redone;
  RowsInDoubles redone_lists;
};

class RerankPhase {
 public:
  RerankPhase(const PanelsPart& part, Unranked& unranked);
  RerankPhase(const RerankPhase&) = delete;
  RerankPhase& operator=(const RerankPhase&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~RerankPhase();

  /// As many points as fit stay, and all after them come by; then those that
  /// come next. Each pair of panels is met once, for both its sides. Waits for
  /// the stream. Returns whether to go on.
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
  /// Lists that are written out, so many rows at a time: in the memory of what
  /// stays, which is not needed any more by then, or here, where that is small.
  const std::int64_t write_rows_;
  DeviceBuffer<double> own_lists_;
  AnswerWriter answer_;
};

}  // namespace cuda
}  // namespace fsknn
