#pragma once

// Pinned host memory in pieces of one size. Pinning takes 0.2 ms per MiB, so
// that pinned pieces are kept for the next call, up to a limit.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {

/// Holds `count` pieces of at least `bytes` each while it exists.
class PinnedPieces {
 public:
  PinnedPieces(std::int64_t count, std::int64_t bytes);
  PinnedPieces(const PinnedPieces&) = delete;
  PinnedPieces& operator=(const PinnedPieces&) = delete;
  ~PinnedPieces();

  std::int64_t count() const {
    return static_cast<std::int64_t>(pieces_.size());
  }
  char* operator[](std::int64_t piece) {
    return pieces_[static_cast<std::size_t>(piece)].data();
  }

 private:
  bool standard_;
  std::vector<PinnedBuffer<char>> pieces_;
};

/// Frees the pieces kept for the next call.
void give_back_pinned();

}  // namespace cuda
}  // namespace fsknn
