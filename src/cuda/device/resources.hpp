#pragma once

// Owners of CUDA resources. They can only be moved. A destructor ignores
// errors, because after a sticky failure nothing can be freed.

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "core/base/errors.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/device/spares.hpp"

namespace fsknn {
namespace cuda {

/// Makes a device current in this thread, and later restores the previous one.
/// It does not use cudaSetDevice() to restore: that would start CUDA on an
/// unused device, which takes time and 500 MB.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : before_(current_context()) {
    CUDA_CHECK_ON(device, cudaSetDevice(device));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() { set_current_context(before_); }

 private:
  void* before_;
};

/// The same for freeing memory. It ignores CUDA's errors: after a loss nothing
/// can be freed.
class GivingBackOn {
 public:
  explicit GivingBackOn(int device) : before_(current_context()) {
    cudaSetDevice(device);
  }
  GivingBackOn(const GivingBackOn&) = delete;
  GivingBackOn& operator=(const GivingBackOn&) = delete;
  ~GivingBackOn() { set_current_context(before_); }

 private:
  void* before_;
};

/// Device memory of the current device, not initialised.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t size) : size_(size) {
    if (size > 0)
      held_ =
          allocate(static_cast<double>(size) * static_cast<double>(sizeof(T)));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : held_(std::exchange(other.held_, {})),
        size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(size_, other.size_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { give_back(held_); }

  T* data() { return static_cast<T*>(held_.data); }
  const T* data() const { return static_cast<const T*>(held_.data); }
  std::int64_t size() const { return size_; }

 private:
  Allocation held_;
  std::int64_t size_ = 0;
};

/// Page-locked host memory, which a device copies at full speed.
template <class T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::int64_t size) {
    if (size == 0) return;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    void* data = nullptr;
    const cudaError_t code =
        injected("cudaHostAlloc")
            ? fault_error()
            : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
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
  Stream() : device_(device_if_any()), stream_(take_spare_stream()) {
    if (stream_ == nullptr)
      CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (!keep_spare_stream(stream_, device_)) cudaStreamDestroy(stream_);
  }

  cudaStream_t get() const { return stream_; }
  void wait() const { CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  const int device_;
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream's work, for which the host spins only a short time. It
/// is created when it is first recorded: most searches record few of their
/// events.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  /// For recording it. The device of the stream must be current.
  cudaEvent_t get() {
    if (event_ == nullptr)
      CUDA_CHECK(cudaEventCreateWithFlags(
          &event_, cudaEventDisableTiming | cudaEventBlockingSync));
    return event_;
  }
  void record(const Stream& stream) {
    CUDA_CHECK(cudaEventRecord(get(), stream.get()));
  }

  // These return at once if nothing was recorded.

  /// Makes later work on the stream, on any device, wait for the recorded
  /// point.
  void hold(cudaStream_t stream) const {
    if (event_ != nullptr) CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
  }
  void hold(const Stream& stream) const { hold(stream.get()); }
  void wait() const {
    spin();
    if (event_ != nullptr) CUDA_CHECK(cudaEventSynchronize(event_));
  }
  /// Does the same, for destructors.
  void wait_at_end() const noexcept {
    spin();
    if (event_ != nullptr) cudaEventSynchronize(event_);
  }

 private:
  /// Waits a short time for the recorded point. A host thread that sleeps is
  /// woken tens of microseconds later, which is longer than most waits of a
  /// small search.
  void spin() const noexcept {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::microseconds most(100);
    if (event_ == nullptr) return;
    const Clock::time_point start = Clock::now();
    while (cudaEventQuery(event_) == cudaErrorNotReady) {
      // This is no error, and must not be taken for one later.
      cudaGetLastError();
      if (Clock::now() - start > most) return;
    }
  }

  cudaEvent_t event_ = nullptr;
};

}  // namespace cuda
}  // namespace fsknn
