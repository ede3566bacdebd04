#pragma once

// The similarities of all pairs or triples in one byte each, as CoMet writes
// them (Joubert et al. 2018): floor(255 c), ordered by the second point, then
// the third, then the first.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// Returns the bytes range by range, so that only one range is held at a time.
class SimilarityBytes {
 public:
  /// num_way: 2 or 3. The metric must be proportional or sorensen, and no point
  /// may be skipped.
  SimilarityBytes(const Request& request, int num_way, const RowSource& source,
                  Progress* progress);
  /// Returns the next bytes, about `most` of them (a whole number of rows: the
  /// first points of one second and third point). An empty vector is the end.
  std::vector<std::uint8_t> next(std::int64_t most, Progress* progress);

 private:
  /// All points before `second`, paired with it, and with `third` for triples.
  struct Row {
    std::int64_t second, third, at;
  };
  /// Moves to the next row; returns false at the end.
  bool advance();
  void fill(const Row& row, std::uint8_t* to) const;

  const Request request_;
  const int num_way_;
  const Kernels& kernels_;
  const PreparedPoints points_;
  std::int64_t second_ = 0, third_ = 0;
};

}  // namespace cpu
}  // namespace fsknn
