#pragma once

// All pairs of points with missing values, as the searches among them meet
// those: chunk by chunk, through the filter, then exactly.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/masked_points.hpp"
#include "core/pieces.hpp"
#include "core/plan.hpp"
#include "core/progress.hpp"
#include "core/request.hpp"
#include "core/source.hpp"
#include "cpu/kernels.hpp"
#include "cpu/masked_filter.hpp"

namespace fsknn {
namespace cpu {

/// Points and queries (null: the points among themselves), prepared.
struct MaskedWork {
  MaskedWork(const Request& asked, const RowSource& points,
             const RowSource* queries, Progress* progress);
  MaskedWork(const MaskedWork&) = delete;
  MaskedWork& operator=(const MaskedWork&) = delete;

  const MaskedPoints& rows() const { return symmetric ? columns : own_rows; }
  bool empty() const { return rows().size() == 0 || columns.size() == 0; }
  /// Of work that is not empty.
  Plan plan() const;

  Request request;  ///< as asked, with as many threads as are of use
  const Kernels& kernels;
  const bool symmetric;
  MaskedPoints columns;

 private:
  MaskedPoints own_rows;
};

/// Each row has a threshold, a distance: pairs that are further apart than
/// those of both their rows (of queries: of the row) need not be brought.
class MaskedPass {
 public:
  /// One thread's hand. Takes pairs that have an r, by their places, each once.
  struct Taker {
    virtual ~Taker() = default;
    virtual void take(std::int64_t row, std::int64_t column, double r) = 0;
  };
  using MakeTaker = std::function<std::unique_ptr<Taker>()>;

  /// At first every pair is brought. filtered: is the filter worth its rows?
  MaskedPass(const MaskedWork& work, const Plan& plan, bool filtered,
             Progress* progress);
  /// By any thread, at any time.
  void set_threshold(std::int64_t row, double distance) {
    threshold_[static_cast<std::size_t>(row)].store(
        masked_threshold(distance), std::memory_order_relaxed);
  }
  void run(const Stretch& stretch, const MakeTaker& make_taker);

  double pairs_filtered() const { return pairs_filtered_; }
  double pairs_exact() const { return pairs_exact_; }

 private:
  class Worker;
  const MaskedFilterRows& row_filter() const {
    return work_.symmetric ? column_filter_ : row_filter_;
  }
  float threshold(std::int64_t row) const {
    return threshold_[static_cast<std::size_t>(row)].load(
        std::memory_order_relaxed);
  }

  const MaskedWork& work_;
  const Plan& plan_;
  const bool filtered_;
  std::unique_ptr<std::atomic<float>[]> threshold_;  ///< in similarity
  MaskedFilterRows column_filter_, row_filter_;
  double pairs_filtered_ = 0, pairs_exact_ = 0;
};

}  // namespace cpu
}  // namespace fsknn
