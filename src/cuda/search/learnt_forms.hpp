#pragma once

// What the devices of one search learnt of its points, each for itself from the
// same sample: the same, or a similarity that one found would be another number
// to the next. Plain C++, for the host.

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// The points in a filter's form, as one device has them.
struct LearntForm {
  NumberForm form = NumberForm::none;
  bool centred = false;
  bool suits = true;
  std::int64_t row_bytes = 0;
  std::uint64_t digest = 0;  ///< of what was made; 0 before that

  bool operator==(const LearntForm& other) const {
    return form == other.form && centred == other.centred &&
           suits == other.suits && row_bytes == other.row_bytes &&
           digest == other.digest;
  }
};

/// A search has one, and each device's worker tells it before any of them reads
/// what another found.
class LearntForms {
 public:
  enum class Stage { learnt, made };

  /// asked: the form that this one was learnt instead of, or is. Throws
  /// std::logic_error where another device told another.
  void tell(const RowsInForm& asked, Stage stage, const LearntForm& own) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Given& told : given_) {
      if (told.asked != asked.form || told.centred != asked.centred ||
          told.stage != stage)
        continue;
      if (told.learnt == own) return;
      throw std::logic_error("GPUs of one search learnt different filters");
    }
    given_.push_back({asked.form, asked.centred, stage, own});
  }

 private:
  struct Given {
    NumberForm asked;
    bool centred;
    Stage stage;
    LearntForm learnt;
  };
  std::mutex mutex_;
  std::vector<Given> given_;
};

}  // namespace cuda
}  // namespace fsknn
