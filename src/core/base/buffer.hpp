#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "core/base/errors.hpp"

namespace fsknn {

/// An array of plain values, aligned to a cache line and not initialised.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size) : size_(size) {
    if (size == 0) return;
    const double bytes = static_cast<double>(size) * sizeof(T);
    if (bytes > 1e18) throw MemoryFailure(bytes);
    data_ = static_cast<T*>(
        ::operator new (static_cast<std::size_t>(size) * sizeof(T),
                        std::align_val_t{kAlignment}, std::nothrow));
    if (data_ == nullptr) throw MemoryFailure(bytes);
  }
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      release();
      data_ = other.data_;
      size_ = other.size_;
      other.data_ = nullptr;
      other.size_ = 0;
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kAlignment = 64;
  void release() {
    if (data_ != nullptr)
      ::operator delete (data_, std::align_val_t{kAlignment});
  }
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace fsknn
