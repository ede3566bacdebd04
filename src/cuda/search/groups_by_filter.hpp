#pragma once

// Makes a graph by groups by a filter (plan/group_pairs.hpp). It differs from a
// graph (lists_by_filter.hpp) in that a point has several lists, and a slot for
// each of those in progress. Groups are compared batch by batch in the same
// memory; all results stay on the device until the end.

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/plan/group_pairs.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/lists_by_filter.hpp"

namespace fsknn {
namespace cuda {

/// The data that the devices share. Made before the workers start.
struct GroupTeam {
  /// Takes the search's points, whose places are in the order of their groups.
  GroupTeam(const Search& search, const PointGroups& groups,
            const GroupBlocks& blocks, const std::vector<Device>& devices,
            int count);

  int size() const { return static_cast<int>(batches.size()); }
  /// Returns the first of the points whose lists that device writes.
  std::int64_t first_row(int device) const {
    return static_cast<std::int64_t>(rows.size()) * device / size();
  }
  /// Returns the slots of the largest batch of a device.
  std::int64_t most_slots(int device) const;
  std::int64_t num_launches() const;

  const PointGroups& groups;
  const GroupBlocks& blocks;
  const std::int64_t num_lists;
  std::vector<std::vector<GroupBatch>> batches;  ///< of each device
  std::vector<int> devices;                      ///< CUDA's own numbers
  std::vector<Lists> found;  ///< of each, after the devices met
  /// [points] in the order of the user's numbers: those, and the places.
  std::vector<std::int32_t> row_ids, row_places;
  std::vector<std::int32_t> rows;    ///< by place: the row
  std::vector<std::int32_t> places;  ///< of the blocks' slots
  Workers* workers = nullptr;
};

/// The part of one device. Constructed and run on its worker, whose current
/// device it uses; the parts of all devices must outlive the work of each.
class GroupsByFilter : public ListsByFilter {
 public:
  GroupsByFilter(const Search& search, GroupTeam& team, int own);
  ~GroupsByFilter() { wait(); }

  /// Finds the lists of its batches, and writes all lists of its share of the
  /// points.
  void run();

 private:
  void make_form();
  FilterRows data_rows() { return formed_.form->rows(); }
  bool meet(const GroupBatch& batch);
  std::vector<FilterJobs> launches_of(const GroupBatch& batch);
  bool redo(const GroupBatch& batch);
  bool redo_in(std::int64_t target, std::int64_t own, std::int64_t list,
               const RedoneRows& rows);
  void gather();

  std::int64_t first_row(int device) const { return team_.first_row(device); }
  /// Returns the lists of neighbours from this row of points on.
  Lists found_from(std::int64_t row);
  FilterRows list_rows(const std::int32_t* blocks, float* values,
                       std::int64_t num_slots);

  GroupTeam& team_;
  const int own_;
  FormedPoints formed_;
  DeviceBuffer<std::int32_t> data_places_, rows_, row_places_;
  // For the list blocks of a batch.
  DeviceBuffer<ListBlock> blocks_;
  DeviceBuffer<std::int32_t> block_of_, slot_rows_;
  DeviceBuffer<float> values_;
  DeviceBuffer<ListedJob> jobs_;
};

}  // namespace cuda
}  // namespace fsknn
