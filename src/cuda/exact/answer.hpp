#pragma once

// Copies lists from a device into the answer, piece by piece: host threads copy
// one piece out of pinned memory while the next ones are in transfer.

#include <atomic>
#include <cstdint>

#include "core/contract/request.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/staging.hpp"
#include "cuda/exact/emit.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {

/// Belongs to one host thread, and uses its current device.
class AnswerWriter {
 public:
  /// Takes at most most_rows lists at a time. All are full or, with
  /// may_be_short, may have empty places at their ends. The writer holds
  /// AnswerShape::bytes_device() of device memory.
  AnswerWriter(const Neighbours& out, std::int64_t most_rows, std::int64_t k,
               int num_threads, bool may_be_short = false);
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  /// Writes the lists as the rows ids[0 .. num_rows - 1] of the answer. `from`
  /// is used for correlations, where they are requested. Waits for the stream
  /// and for the end of all writing. Throws RangeFailure if a list that must be
  /// full is not, or if a distance is not finite.
  void write(const Lists& lists, std::int64_t num_rows, const std::int32_t* ids,
             const CorrelationOf& from, const Stream& stream);

  double seconds() const { return seconds_; }
  std::int64_t rows_short() const { return rows_short_; }

 private:
  struct Job;
  void write_pieces(const Lists& lists, std::int64_t num_rows,
                    const std::int32_t* ids, const CorrelationOf& from,
                    const Stream& stream);
  Slice slice(const Job& job, std::int64_t piece);
  void send(const Job& job, std::int64_t piece);
  void copy_out(const Job& job, std::int64_t piece, std::int64_t part);
  void copy_matrices(const Job& job, const Slice& s, std::int64_t part,
                     char* slot);
  void copy_edges(const Job& job, const Slice& s, std::int64_t part,
                  char* slot);
  void copy_short(const Job& job, const Slice& s, std::int64_t part,
                  char* slot);
  // The layout of a slot is the same on the host and on the device.
  double* distances(char* slot) const {
    return reinterpret_cast<double*>(slot);
  }
  double* correlations(char* slot) const {
    return distances(slot) + shape_.entries;
  }
  std::int32_t* indices(char* slot) const {
    return reinterpret_cast<std::int32_t*>(correlations(slot) + shape_.entries);
  }
  char* device_slot(std::int64_t piece) {
    return staged_.data() + piece % shape_.slots * shape_.slot_bytes();
  }

  const Neighbours& out_;
  const std::int64_t k_;
  const int num_threads_;
  const AnswerShape shape_;
  DeviceBuffer<char> staged_;  ///< [slots x slot_bytes]
  PinnedPieces pinned_;        ///< [slots]
  Event sent_[AnswerShape::most_slots];
  const bool may_be_short_;
  std::atomic<std::int64_t> rows_short_{0};
  double seconds_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
