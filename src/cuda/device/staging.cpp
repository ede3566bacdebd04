#include "cuda/device/staging.hpp"

#include <mutex>

namespace fsknn {
namespace cuda {
namespace {

// The number of pieces of two searches on one GPU.
constexpr std::size_t kMostKept = 16;

struct Kept {
  Kept() { pieces.reserve(kMostKept); }
  std::mutex mutex;
  std::vector<PinnedBuffer<char>> pieces;
  int device = 0;  ///< current when the last pieces were kept
};

/// It is never destroyed, because CUDA may shut down first at the end of the
/// process.
Kept& kept() {
  static Kept* const all = new Kept;
  return *all;
}

}  // namespace

PinnedPieces::PinnedPieces(std::int64_t count, std::int64_t bytes)
    : standard_(bytes <= kPieceBytes) {
  pieces_.reserve(static_cast<std::size_t>(count));
  if (standard_) {
    Kept& all = kept();
    const std::lock_guard<std::mutex> lock(all.mutex);
    while (!all.pieces.empty() &&
           static_cast<std::int64_t>(pieces_.size()) < count) {
      pieces_.push_back(std::move(all.pieces.back()));
      all.pieces.pop_back();
    }
  }
  while (static_cast<std::int64_t>(pieces_.size()) < count)
    pieces_.emplace_back(standard_ ? kPieceBytes : bytes);
}

PinnedPieces::~PinnedPieces() {
  if (!standard_) return;
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (cudaGetDevice(&all.device) != cudaSuccess) cudaGetLastError();
  for (PinnedBuffer<char>& piece : pieces_) {
    if (all.pieces.size() == kMostKept) break;
    all.pieces.push_back(std::move(piece));
  }
}

void give_back_pinned() {
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.pieces.empty()) return;
  // Uses a device on which CUDA is started, as freeing would start it.
  const DeviceGuard guard(all.device);
  all.pieces.clear();
}

}  // namespace cuda
}  // namespace fsknn
