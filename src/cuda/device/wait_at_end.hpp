#pragma once

#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

/// Waits for a stream when it is destroyed, also after a failure. Resources
/// that the stream uses must be declared before it, so that they are destroyed
/// later.
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
