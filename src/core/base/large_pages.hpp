#pragma once

// Large pages, if the system has them, for memory that is written throughout.

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "core/base/buffer.hpp"

namespace fsknn {

/// Requests large pages, before the buffer is first written. The first access
/// to each page costs as much as copying half of it. Rows in pages of their own
/// also need more translations than a processor caches.
template <class T>
void in_large_pages(const Buffer<T>& buffer) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t page = std::size_t{1} << 21;
  const std::size_t bytes = static_cast<std::size_t>(buffer.size()) * sizeof(T);
  const std::size_t after =
      reinterpret_cast<std::uintptr_t>(buffer.data()) % page;
  const std::size_t before_first = after == 0 ? 0 : page - after;
  if (bytes < before_first + page) return;
  // This is only advice: nothing changes if the system ignores it.
  static_cast<void>(madvise(
      reinterpret_cast<char*>(const_cast<T*>(buffer.data())) + before_first,
      (bytes - before_first) / page * page, MADV_HUGEPAGE));
#else
  static_cast<void>(buffer);
#endif
}

}  // namespace fsknn
