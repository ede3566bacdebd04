#pragma once

// Pieces of work on a stream, two under way at a time.

#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

/// The device never waits for the host, nor does the host run far ahead of it,
/// so that the user's wish to stop is heard.
class TwoUnderWay {
 public:
  /// Before a piece is put on the stream: waits for the last but one.
  void begin() { done_[turn_].wait(); }
  /// After it was.
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
