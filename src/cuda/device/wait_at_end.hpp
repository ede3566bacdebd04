#pragma once

#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

/// Waits for a stream when it goes, after a failure too: what was declared
/// before it, and is used by what is under way there, goes later.
class WaitAtEnd {
 public:
  explicit WaitAtEnd(const Stream& stream) : stream_(stream) {}
  WaitAtEnd(const WaitAtEnd&) = delete;
  WaitAtEnd& operator=(const WaitAtEnd&) = delete;
  ~WaitAtEnd() { cudaStreamSynchronize(stream_.get()); }

 private:
  const Stream& stream_;
};

}  // namespace cuda
}  // namespace fsknn
