#pragma once

// How well modules of one data set are preserved in another (Langfelder et al.
// 2011, PLoS Computational Biology 7: e1001057).

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.hpp"
#include "cpu/search/engine.hpp"

namespace fsknn {
namespace cpu {

/// The statistics of a module, in the order of the answer.
struct ModuleStatistics {
  double explained;         ///< share of variance of the eigengene
  double mean_kme;          ///< with the signs of the reference
  double mean_correlation;  ///< with the signs of the reference
  double mean_adjacency;
  double kim_correlation;   ///< of connectivities within the module
  double kme_correlation;   ///< of correlations with the eigengene
  double pair_correlation;  ///< of the correlations of all pairs
};

/// Rows of length 1 and mean 0, one after another, padded with zeros.
struct UnitRows {
  std::int64_t size = 0, features = 0, padded = 0;
  const double* first = nullptr;
};

struct ModuleQuestion {
  UnitRows reference, test;
  /// The points of each module, from 0, in both sets of rows.
  std::vector<std::vector<std::int32_t>> in_reference, in_test;
  /// [most x num_sets]: sets of points of `test`, in random order. A module of
  /// m points takes the first m of each set, as if they were its own.
  const std::int32_t* sets = nullptr;
  std::int64_t most = 0, num_sets = 0;
  NetworkType type = NetworkType::magnitude;
  double power = 6.0;
  std::string instruction_set;
  int num_threads = 1;
};

/// observed: [modules]. null: [modules x num_sets], the modules of a set
/// together. A correlation of values that are all equal is NaN. The results do
/// not depend on the threads or the instruction set.
void preserve_modules(const ModuleQuestion& question,
                      ModuleStatistics* observed, ModuleStatistics* null,
                      Progress* progress);

}  // namespace cpu
}  // namespace fsknn
