#pragma once

// What the rest of the package knows of CUDA: no CUDA type in sight. Compiled
// from files that know CUDA where configure found a toolkit
// (device/devices.cpp, filter/self_test.cu, search/engine.cpp,
// search/within.cpp, search/count_pairs.cpp, search/held_points.cpp,
// triples/triple_scanner.cpp, prepare/prepared_rows.cpp), else from absent.cpp.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/progress.hpp"
#include "core/contract/pair_bins.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/between.hpp"
#include "core/search/triple_scanner.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace cuda {

struct Device {
  int cuda_id = 0;  ///< CUDA's own number
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  double bytes_total = 0;
  double bytes_free = -1;  ///< -1: not asked
  int multiprocessors = 0;
  std::int64_t shared_bytes = 0;  ///< that a block of threads may have
  /// Of a GPU of 9.0: whether its code is for warpgroups, that of 90a.
  bool hopper_code = true;
};

struct Status {
  bool built = false;  ///< this installation holds CUDA code
  /// And a device that can run it is here; else why not.
  bool usable() const { return !why_not; }
  std::optional<BackendFailure> why_not;
  std::string toolkit;        ///< the toolkit's version; empty when not built
  std::string architectures;  ///< that it was compiled for, as "80 90a ptx80"
  /// Those that it was not compiled for, which are not among devices().
  std::vector<Device> left_out;
  /// What went wrong, where that ended CUDA's use in this process.
  std::optional<CudaFailure> lost;
};

/// Neither throws, nor starts CUDA on a device (makes its context, which takes
/// time and memory); both say what is so at this moment. bytes_free is known of
/// the devices that this process uses already.
Status status();
std::vector<Device> devices();

/// The devices that a request names (rows of devices(), from 0; none: all),
/// with CUDA started on them, so that bytes_free is known. Throws
/// BackendFailure where CUDA or a device cannot be used, CudaFailure where it
/// fails.
std::vector<Device> start_devices(const std::vector<int>& rows);

/// The self-test of a device: whether its arithmetic is as the proofs assume.
struct SelfTest {
  bool finished = false;
  std::string why_not;           ///< the failure that ended it
  std::set<std::string> failed;  ///< names of filter/self_test.hpp
};
/// One for each of devices(), with CUDA started on them.
std::vector<SelfTest> self_test();

/// The row of devices(), from 0, that has this number of CUDA's; -1: none.
int row_of_device(int cuda_id);

/// As cpu::find_neighbours(), on the request's devices (numbers of the rows of
/// devices(), from 0; empty: all). Throws BackendFailure where not usable.
void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats);

/// Whether find_within() does what a request asks: of pairs over common samples
/// GPUs find the k nearest only. Whoever asks for more asks the CPU.
inline bool finds_within(const Request& request) {
  return !request.na_pairwise;
}

/// As cpu::find_within(), on the request's devices, of what finds_within()
/// says.
void find_within(const Request& request, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats);

/// Whether count_pairs() does what a request asks: not over common samples.
inline bool counts_pairs(const Request& request) {
  return !request.na_pairwise;
}

/// As cpu::count_pairs(), on the request's devices, of what counts_pairs()
/// says.
PairCounts count_pairs(const Request& request, const PairBins& bins,
                       const RowSource& points, Progress* progress,
                       Stats* stats);

/// Triples gone through on the request's devices, where the points stand for as
/// long as it lives. The points must outlive it.
std::unique_ptr<TripleScanner> triple_scanner(const Request& request,
                                              const PreparedPoints& points);

/// As cpu::find_between(), on the first of the request's devices.
void find_between(const Request& request, const Between& between,
                  const RowSource& points, WithinRows& answer,
                  Progress* progress, Stats* stats);

/// One set of points that is searched many times: read once and sent once to
/// the devices, if they have the room, and prepared there again only where a
/// search has another metric, other weights or covariates, or other points left
/// out than the one before. As cpu::HeldPoints.
class HeldPoints {
 public:
  /// Of `asked`: the devices. Nothing is read before the first search. `points`
  /// must stay as they are.
  HeldPoints(const Request& asked, const RowSource& points);
  HeldPoints(const HeldPoints&) = delete;
  HeldPoints& operator=(const HeldPoints&) = delete;
  ~HeldPoints();

  /// As of cpu::HeldPoints: the rows are not sent again.
  void choose_features(const std::vector<std::int32_t>& numbers);

  // Searches, one at a time, on those devices. queries: null for the graph of
  // the points. Not of points that lack values.

  void find_neighbours(const Request& request, const RowSource* queries,
                       const Neighbours& out, Progress* progress, Stats* stats);
  void find_within(const Request& request, const Within& within,
                   const RowSource* queries, WithinAnswer& answer,
                   Progress* progress, Stats* stats);

  /// The memory of these points on a device, with its row from 0.
  struct BytesOn {
    int row;
    double bytes;
  };
  /// Devices that hold none are left out.
  std::vector<BytesOn> bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Gives back what is kept from call to call: before the package is unloaded.
/// Never throws.
void give_back_kept() noexcept;

/// A testing aid: rows as the request's first device prepares them, [points x
/// padded features], row-major, and their sums. ids: of these points only, from
/// 0; null: of all.
void prepared_rows(const Request& request, const RowSource& points,
                   const std::vector<std::int32_t>* ids, double* rows,
                   double* sums);

}  // namespace cuda
}  // namespace fsknn
