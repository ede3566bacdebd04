#include "cuda/device/spares.hpp"

#include <map>
#include <mutex>
#include <vector>

#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {
namespace {

// On one device: the buffers of a search of some thousand queries.
constexpr double kMostSpareBytes = 256.0 * (1 << 20);
constexpr std::size_t kMostSpareStreams = 16;

struct Spares {
  std::vector<Allocation> memory;
  std::vector<cudaStream_t> streams;
  double bytes = 0;
  bool in_use = false;  ///< earlier work may use some of the memory
};

/// It is never destroyed, because CUDA may shut down first at the end of the
/// process.
struct AllSpares {
  std::mutex mutex;
  int keepers = 0;
  std::map<int, Spares> on;  ///< by CUDA's device number
};
AllSpares& all_spares() {
  static AllSpares* const all = new AllSpares;
  return *all;
}

/// Frees everything of one device, which need not be current.
void free_all(int device, Spares& spares) noexcept {
  if (spares.memory.empty() && spares.streams.empty()) return;
  const GivingBackOn guard(device);
  for (const Allocation& one : spares.memory) cudaFree(one.data);
  ++memory_changes;
  for (const cudaStream_t stream : spares.streams) cudaStreamDestroy(stream);
  spares = Spares();
}

}  // namespace

KeepingSpares::KeepingSpares() {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  ++all.keepers;
}

KeepingSpares::~KeepingSpares() {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (--all.keepers > 0) return;
  for (auto& spares : all.on) free_all(spares.first, spares.second);
}

Allocation take_spare(double bytes) {
  AllSpares& all = all_spares();
  Allocation found;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (all.keepers == 0) return found;
    Spares& here = all.on[device_if_any()];
    // The smallest that is large enough, and not much larger.
    std::size_t best = here.memory.size();
    for (std::size_t i = 0; i < here.memory.size(); ++i) {
      const double room = here.memory[i].room;
      if (room >= bytes && room <= 2 * bytes + (1 << 16) &&
          (best == here.memory.size() || room < here.memory[best].room))
        best = i;
    }
    if (best == here.memory.size()) return found;
    found = here.memory[best];
    here.memory.erase(here.memory.begin() + static_cast<std::ptrdiff_t>(best));
    here.bytes -= found.room;
    found.bytes = bytes;
    if (!here.in_use) return found;
    here.in_use = false;
  }
  const cudaError_t code = cudaDeviceSynchronize();
  if (code != cudaSuccess) cudaFree(found.data);
  CUDA_CHECK(code);
  return found;
}

bool keep_spare(const Allocation& allocation) noexcept {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.keepers == 0) return false;
  try {
    Spares& there = all.on[allocation.device];
    if (there.bytes + allocation.room > kMostSpareBytes) return false;
    there.memory.push_back(allocation);
    there.bytes += allocation.room;
    there.in_use = true;
  } catch (...) {
    return false;
  }
  return true;
}

bool free_spares(int device) noexcept {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.on.find(device);
  if (found == all.on.end() || found->second.memory.empty()) return false;
  free_all(device, found->second);
  return true;
}

double bytes_spare(int device) {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.on.find(device);
  return found == all.on.end() ? 0.0 : found->second.bytes;
}

cudaStream_t take_spare_stream() {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.keepers == 0) return nullptr;
  std::vector<cudaStream_t>& streams = all.on[device_if_any()].streams;
  if (streams.empty()) return nullptr;
  const cudaStream_t stream = streams.back();
  streams.pop_back();
  return stream;
}

bool keep_spare_stream(cudaStream_t stream, int device) noexcept {
  AllSpares& all = all_spares();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.keepers == 0) return false;
  try {
    std::vector<cudaStream_t>& streams = all.on[device].streams;
    if (streams.size() == kMostSpareStreams) return false;
    streams.push_back(stream);
  } catch (...) {
    return false;
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
