#pragma once

// A graph by groups by a filter (plan/group_pairs.hpp): as a graph
// (graph_by_filter.hpp), but that a point has several lists, and stands in a
// slot for each of those that are being made. Groups meet batch by batch, in
// the same memory; what is found stays on the device until all is.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/group_pairs.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/chunk_buffer.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/redo_held.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// What the devices share. Made before the workers start.
struct GroupTeam {
  /// Of the search's points, whose places are in the order of their groups.
  GroupTeam(const Search& search, const PointGroups& groups,
            const GroupBlocks& blocks, const std::vector<Device>& devices,
            int count);

  int size() const { return static_cast<int>(batches.size()); }
  std::int64_t num_launches() const;

  const PointGroups& groups;
  const GroupBlocks& blocks;
  const std::int64_t num_lists;
  std::vector<std::vector<GroupBatch>> batches;  ///< of each device
  std::vector<int> devices;                      ///< CUDA's own numbers
  std::vector<Lists> found;  ///< of each, when it has met the others
  /// [points] in the order of the user's numbers: those, and the places.
  std::vector<std::int32_t> row_ids, row_places;
  std::vector<std::int32_t> rows;    ///< by place: the row
  std::vector<std::int32_t> places;  ///< of the blocks' slots
  Workers* workers = nullptr;
};

/// The part of one device. Made and run on its worker, whose current device it
/// uses; the parts of all devices must outlive the work of each.
class GroupsByFilter {
 public:
  GroupsByFilter(const Search& search, GroupTeam& team, int own);
  GroupsByFilter(const GroupsByFilter&) = delete;
  GroupsByFilter& operator=(const GroupsByFilter&) = delete;
  ~GroupsByFilter() { wait(); }
  /// Until nothing of this device's work is under way. After a failure, too.
  void wait() { cudaStreamSynchronize(stream_.get()); }

  /// Finds the lists of its batches, and writes out all lists of its share of
  /// the points.
  void run();

  const Stats& stats() const { return stats_; }

 private:
  void make_form();
  FilterRows data_rows() { return form_->rows(); }
  bool meet(const GroupBatch& batch);
  bool redo(const GroupBatch& batch);
  bool redo_in(std::int64_t target, std::int64_t own, std::int64_t list,
               const RedoneRows& rows);
  void gather();
  void write_out();

  std::int64_t first_row(int device) const {
    return search_.columns.size() * device / team_.size();
  }
  /// The lists of neighbours, from this row of points on.
  Lists found_from(std::int64_t row);
  FilterRows list_rows(const std::int32_t* blocks, float* values,
                       std::int64_t num_slots);

  const Search& search_;
  GroupTeam& team_;
  const int own_;
  const MetricEntry& metric_;
  Workers& workers_;
  const std::int64_t slots_;  ///< of the largest batch
  Stream stream_;
  StoredPoints& stored_;
  const DevicePoints& points_;
  std::unique_ptr<PairFilter> filter_;
  std::unique_ptr<FilterForm> form_;
  DeviceBuffer<std::int32_t> data_places_, rows_, row_places_;
  CandidateStore candidates_;
  // Of the list blocks of a batch.
  DeviceBuffer<ListBlock> blocks_;
  DeviceBuffer<std::int32_t> block_of_, slot_rows_;
  DeviceBuffer<float> values_;
  DeviceBuffer<ListedJob> jobs_;
  DeviceBuffer<unsigned long long> num_candidates_;
  FilterWork work_;
  Cut cut_;
  ExactStep exact_;
  ListBuffer nearest_;  ///< of all points and lists, k each
  AnswerWriter answer_;
  TwoUnderWay under_way_;
  Stats stats_;
};

}  // namespace cuda
}  // namespace fsknn
