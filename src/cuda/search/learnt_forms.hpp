#pragma once

// Compares what the devices of one search learnt, each by itself from the same
// sample. They must agree, or one device would misread another's similarities.
// Plain C++, for the host.

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// The points in a filter's form on one device.
struct LearntForm {
  NumberForm form = NumberForm::none;
  bool centred = false;
  bool suits = true;
  std::int64_t row_bytes = 0;
  std::uint64_t digest = 0;  ///< of the rows made; 0 before that

  bool operator==(const LearntForm& other) const {
    return form == other.form && centred == other.centred &&
           suits == other.suits && row_bytes == other.row_bytes &&
           digest == other.digest;
  }
};

/// A search has one. Each device's worker reports to it before any of them
/// reads another's results.
class LearntForms {
 public:
  enum class Stage { learnt, made };

  /// asked: the form that this one replaces, or is. Throws std::logic_error if
  /// another device reported another one.
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
