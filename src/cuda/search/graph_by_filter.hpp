#pragma once

// A graph by a filter, on one device or several, of points that each device
// holds: rounds of filtered pairs, the exact step over the candidates, and rows
// that overflowed done again.

#include <cstdint>

#include "cuda/search/exchange.hpp"
#include "cuda/search/lists_by_filter.hpp"

namespace fsknn {
namespace cuda {

/// The part of one device. Made and run on its worker, whose current device it
/// uses; the parts of all devices must outlive the work of each, since they
/// read each other's lists.
class GraphByFilter : public ListsByFilter {
 public:
  GraphByFilter(const Search& search, FilterTeam& team, int own);
  ~GraphByFilter() { wait(); }

  /// Finds and writes out the neighbours of the points that this device owns.
  void run();

  /// Pieces of work, by which progress is told, of all devices.
  static std::int64_t num_launches(const FilterTeam& team,
                                   const Search& search);

 private:
  GraphByFilter(const Search& search, FilterTeam& team, int own,
                FilterLayout layout);

  FilterTeam& team_;
  const FilterLayout layout_;
  Exchange exchange_;
  DeviceBuffer<std::int32_t> list_rows_, row_places_;
};

}  // namespace cuda
}  // namespace fsknn
