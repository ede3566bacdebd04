#pragma once

// The similarities of all pairs, or of all triples, a byte each, as CoMet
// writes them (Joubert et al. 2018): floor(255 c), by the second point, then
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

/// Gives them stretch by stretch, so that none but the next is ever held.
class SimilarityBytes {
 public:
  /// num_way: 2 or 3. The metric must be proportional or sorensen, and no point
  /// left out.
  SimilarityBytes(const Request& request, int num_way, const RowSource& source,
                  Progress* progress);
  /// The next ones, about as many as `most` (a whole number of rows: the first
  /// points of one second, and third); none: all were given.
  std::vector<std::uint8_t> next(std::int64_t most, Progress* progress);

 private:
  /// All points before `second`, with it, and with `third` where there is one.
  struct Row {
    std::int64_t second, third, at;
  };
  /// Goes to the next row; false: there is none.
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
