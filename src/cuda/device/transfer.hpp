#pragma once

// Copies between the host and device buffers, in a stream's order.

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

template <class T>
void upload(DeviceBuffer<T>& to, const T* from, std::int64_t count,
            const Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(to.data(), from,
                             static_cast<std::size_t>(count) * sizeof(T),
                             cudaMemcpyHostToDevice, stream.get()));
}

/// Writes zeros from `first` to the buffer's end.
template <class T>
void clear_from(DeviceBuffer<T>& buffer, std::int64_t first,
                const Stream& stream) {
  CUDA_CHECK(cudaMemsetAsync(
      buffer.data() + first, 0,
      static_cast<std::size_t>(buffer.size() - first) * sizeof(T),
      stream.get()));
}

/// Copies `count` values, followed by zeros to the buffer's end.
template <class T>
void upload_padded(DeviceBuffer<T>& to, const T* from, std::int64_t count,
                   const Stream& stream) {
  upload(to, from, count, stream);
  clear_from(to, count, stream);
}

template <class T>
void download(T* to, const DeviceBuffer<T>& from, std::int64_t count,
              const Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(to, from.data(),
                             static_cast<std::size_t>(count) * sizeof(T),
                             cudaMemcpyDeviceToHost, stream.get()));
}

/// Returns numbers of device memory, after the stream's earlier work.
template <class T>
std::vector<T> downloaded(const T* from, std::int64_t count,
                          const Stream& stream) {
  std::vector<T> to(static_cast<std::size_t>(count));
  if (count == 0) return to;
  CUDA_CHECK(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(T),
                             cudaMemcpyDeviceToHost, stream.get()));
  stream.wait();
  return to;
}
template <class T>
T downloaded(const T* from, const Stream& stream) {
  return downloaded(from, 1, stream)[0];
}

/// Returns a buffer of zeros, for any stream.
template <class T>
DeviceBuffer<T> zeros(std::int64_t count) {
  DeviceBuffer<T> buffer(count);
  CUDA_CHECK(cudaMemset(buffer.data(), 0,
                        static_cast<std::size_t>(count) * sizeof(T)));
  CUDA_CHECK(cudaStreamSynchronize(nullptr));
  return buffer;
}

}  // namespace cuda
}  // namespace fsknn
