#pragma once

// The request to a backend, and the result.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/filter_numbers.hpp"
#include "core/base/numbers.hpp"
#include "core/contract/covariates.hpp"
#include "core/contract/groups.hpp"
#include "core/contract/metric.hpp"
#include "core/contract/weights.hpp"

namespace fsknn {

struct Request {
  std::int64_t k = 0;  ///< neighbours per list
  /// Groups by which a row has several lists, one after another; null: one
  /// list.
  std::shared_ptr<const PointGroups> groups;
  const MetricEntry* metric = nullptr;
  /// Owns `metric` if it has constants of this request's own (is_table()).
  std::shared_ptr<const MetricEntry> table_entry;
  /// Points left out: they are nobody's neighbour, and their rows are missing.
  /// Ascending.
  std::vector<std::int64_t> skip;
  std::vector<std::int64_t> query_skip;
  /// [queries] the id of the point that each query is, so that it is not its
  /// own neighbour; -1: none. Empty: no query is a point.
  std::vector<std::int32_t> query_self;
  /// Weights of the features; null: all are equal.
  std::shared_ptr<const SampleWeights> weights;
  /// Covariates of the features, under these weights: rows are replaced by
  /// their residuals. Null: rows are not adjusted.
  std::shared_ptr<const SampleCovariates> covariates;
  int num_threads = 1;
  std::int64_t chunk_size = 0;   ///< 0: automatic
  std::vector<int> devices;      ///< 0-based; empty: all
  double max_device_memory = 0;  ///< bytes on each GPU; 0: all free memory
  /// Largest memory in bytes for points from a file; 0: no limit. CPU only.
  double max_memory = 0;
  /// Largest |x| of points and queries; negative: unknown.
  double largest = -1;
  /// NaN values are missing: each pair uses the features that both rows have
  /// (core/contract/masked.hpp). Rows may find fewer than k neighbours.
  bool na_pairwise = false;
  std::int64_t min_pairs = 3;  ///< a pair with fewer in common is invalid
  std::string instruction_set = "auto";  ///< CPU: forces one, for tests
};

/// The memory for the neighbours. Matrices are column-major with `rows` rows
/// and a column for each rank, as R needs them. As edges, the k entries of each
/// row are contiguous, in order of the rows, and rows that are left out have
/// none. Indices are 1-based. `correlation` may be null.
struct Neighbours {
  std::int64_t rows = 0;
  std::int32_t* index = nullptr;
  double* distance = nullptr;
  double* correlation = nullptr;
  std::int32_t missing_index = 0;  ///< matrices: for rows left out
  double missing_value = 0.0;
  std::int64_t edges_a_row = 0;  ///< k for edges; 0: matrices
  /// Edges: the rows left out, ascending; null: none.
  const std::vector<std::int64_t>* left_out = nullptr;

  bool as_edges() const { return edges_a_row > 0; }
  /// The position of a row's entry with this rank; for edges, the row must have
  /// entries.
  std::int64_t at(AnswerRow answer_row, Rank rank) const {
    std::int64_t row = answer_row.value;
    if (!as_edges()) return rank.value * rows + row;
    if (left_out != nullptr)
      row -= std::lower_bound(left_out->begin(), left_out->end(), row) -
             left_out->begin();
    return row * edges_a_row + rank.value;
  }
  /// The offset from one rank of a row to the next.
  std::int64_t step() const { return as_edges() ? 1 : rows; }
};

/// Statistics of the work; never part of the answer.
struct Stats {
  double pairs_filtered = 0;   ///< pairs that the filter computed
  double pairs_pruned = 0;     ///< pairs pruned by keys or boxes before
  double pairs_exact = 0;      ///< pairs that the exact step computed
  double rows_recomputed = 0;  ///< recomputed: too many candidates, or too few
  double rows_widened = 0;     ///< recomputed rows that a wider filter finished
  double rows_short = 0;  ///< missing values: rows with fewer than k neighbours
  double seconds_prepare = 0, seconds_search = 0, seconds_emit = 0;
  double seconds_device = 0;  ///< GPUs: from prepared rows to merged lists
  double bytes_device = 0;    ///< GPUs: the most held at a time, on any one
  int num_devices = 0;        ///< GPUs that were used; 0: the CPU
  /// The numbers of the filter's rows, the widest if there were several.
  FilterNumbers filter = FilterNumbers::none;
  bool streamed = false;  ///< GPUs: whether rows were read more than once

  /// Adds the statistics of one of several workers that ran at the same time.
  void add_part(const Stats& part) {
    pairs_filtered += part.pairs_filtered;
    pairs_pruned += part.pairs_pruned;
    pairs_exact += part.pairs_exact;
    rows_recomputed += part.rows_recomputed;
    rows_widened += part.rows_widened;
    rows_short += part.rows_short;
    filter = wider(filter, part.filter);
    seconds_emit = std::max(seconds_emit, part.seconds_emit);
    seconds_device = std::max(seconds_device, part.seconds_device);
  }
  /// Adds the statistics of work that ran afterwards.
  void add_after(const Stats& part) {
    const double emit = seconds_emit, device = seconds_device;
    add_part(part);
    seconds_prepare += part.seconds_prepare;
    seconds_search += part.seconds_search;
    seconds_emit = emit + part.seconds_emit;
    seconds_device = device + part.seconds_device;
    bytes_device = std::max(bytes_device, part.bytes_device);
    num_devices = std::max(num_devices, part.num_devices);
    streamed = streamed || part.streamed;
  }
};

}  // namespace fsknn
