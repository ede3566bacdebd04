#pragma once

// Memory that is written all over: in large pages, where the system has them.

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "core/buffer.hpp"

namespace fsknn {

/// Asks for large pages, before the buffer is first written: each page that is
/// touched first costs as much as copying half of it, and rows in pages of
/// their own need more translations than a processor keeps.
template <class T>
void in_large_pages(const Buffer<T>& buffer) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::uintptr_t first = (start + page - 1) / page * page;
  const std::uintptr_t end =
      (start + static_cast<std::size_t>(buffer.size()) * sizeof(T)) / page *
      page;
  // It is advice: where it is not taken, nothing changes.
  if (first < end)
    static_cast<void>(
        madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
#else
  static_cast<void>(buffer);
#endif
}

}  // namespace fsknn
