#pragma once

// A graph by groups by a filter (plan/group_pairs.hpp): as a graph
// (lists_by_filter.hpp), but that a point has several lists, and stands in a
// slot for each of those that are being made. Groups meet batch by batch, in
// the same memory; what is found stays on the device until all is.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/plan/group_pairs.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/lists_by_filter.hpp"

namespace fsknn {
namespace cuda {

/// What the devices share. Made before the workers start.
struct GroupTeam {
  /// Of the search's points, whose places are in the order of their groups.
  GroupTeam(const Search& search, const PointGroups& groups,
            const GroupBlocks& blocks, const std::vector<Device>& devices,
            int count);

  int size() const { return static_cast<int>(batches.size()); }
  /// Of the points whose lists that device writes out.
  std::int64_t first_row(int device) const {
    return static_cast<std::int64_t>(rows.size()) * device / size();
  }
  /// Of the largest batch of a device.
  std::int64_t most_slots(int device) const;
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
class GroupsByFilter : public ListsByFilter {
 public:
  GroupsByFilter(const Search& search, GroupTeam& team, int own);
  ~GroupsByFilter() { wait(); }

  /// Finds the lists of its batches, and writes out all lists of its share of
  /// the points.
  void run();

 private:
  void make_form();
  FilterRows data_rows() { return formed_.form->rows(); }
  bool meet(const GroupBatch& batch);
  FilterSchedule schedule(const GroupBatch& batch);
  bool redo(const GroupBatch& batch);
  bool redo_in(std::int64_t target, std::int64_t own, std::int64_t list,
               const RedoneRows& rows);
  void gather();

  std::int64_t first_row(int device) const { return team_.first_row(device); }
  /// The lists of neighbours, from this row of points on.
  Lists found_from(std::int64_t row);
  FilterRows list_rows(const std::int32_t* blocks, float* values,
                       std::int64_t num_slots);

  GroupTeam& team_;
  const int own_;
  FormedPoints formed_;
  DeviceBuffer<std::int32_t> data_places_, rows_, row_places_;
  // Of the list blocks of a batch.
  DeviceBuffer<ListBlock> blocks_;
  DeviceBuffer<std::int32_t> block_of_, slot_rows_;
  DeviceBuffer<float> values_;
  DeviceBuffer<ListedJob> jobs_;
};

}  // namespace cuda
}  // namespace fsknn
