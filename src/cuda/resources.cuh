#pragma once

// Owners of what CUDA hands out. Move-only; what a destructor cannot give back
// it leaves (after a failure that the device does not recover from, nothing can
// be given back).

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "core/errors.hpp"
#include "cuda/check.cuh"

namespace fsknn {
namespace cuda {

/// Makes a device the current one of this thread, and the one before it again.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    CUDA_CHECK(cudaGetDevice(&before_));
    CUDA_CHECK(cudaSetDevice(device));
    changed_ = before_ != device;
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Device memory of the current device, not initialised.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t size) : size_(size) {
    if (size == 0) return;
    const double bytes = static_cast<double>(size) * sizeof(T);
    void* data = nullptr;
    check_allocation(
        bytes > 1e18 ? cudaErrorMemoryAllocation
                     : cudaMalloc(&data, static_cast<std::size_t>(size) *
                                             sizeof(T)),
        bytes);
    data_ = static_cast<T*>(data);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr) cudaFree(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// Page-locked host memory: what a device copies to and from at full speed.
template <class T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::int64_t size) {
    if (size == 0) return;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    void* data = nullptr;
    const cudaError_t code =
        cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw MemoryFailure(static_cast<double>(bytes));
    }
    CUDA_CHECK(code);
    data_ = static_cast<T*>(data);
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }

  T* data() { return data_; }

 private:
  T* data_ = nullptr;
};

class Stream {
 public:
  Stream() {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }
  void wait() const { CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream's work that the host waits for, asleep.
class Event {
 public:
  Event() {
    CUDA_CHECK(cudaEventCreateWithFlags(
        &event_, cudaEventDisableTiming | cudaEventBlockingSync));
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  void record(const Stream& stream) {
    CUDA_CHECK(cudaEventRecord(event_, stream.get()));
  }
  /// What is put on the stream from here on waits for what was recorded, on
  /// whichever device.
  void hold(const Stream& stream) const {
    CUDA_CHECK(cudaStreamWaitEvent(stream.get(), event_, 0));
  }
  cudaEvent_t get() const { return event_; }
  /// Returns at once where nothing was recorded.
  void wait() { CUDA_CHECK(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace cuda
}  // namespace fsknn
