#pragma once

// Runs pieces of work on a stream, two at a time.

#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

/// The device never waits for the host, and the host is at most two pieces
/// ahead, so that interrupts are noticed.
class TwoUnderWay {
 public:
  /// Waits for the last piece but one. Call it before a piece is put on the
  /// stream.
  void begin() { done_[turn_].wait(); }
  /// Call it after the piece was put on the stream.
  void end(const Stream& stream) {
    done_[turn_].record(stream);
    turn_ ^= 1;
  }

 private:
  Event done_[2];
  int turn_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
