#pragma once

// The checksum at the end of a gzip file (RFC 1952, section 8).

#include <array>
#include <cstdint>

namespace fsknn {

/// The checksum of bytes that follow others, whose checksum is `before`.
inline std::uint32_t crc32(const void* bytes, std::int64_t size,
                           std::uint32_t before = 0) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t rest = byte;
      for (int bit = 0; bit < 8; ++bit)
        rest = (rest & 1u) != 0 ? 0xedb88320u ^ (rest >> 1) : rest >> 1;
      made[byte] = rest;
    }
    return made;
  }();
  const unsigned char* const at = static_cast<const unsigned char*>(bytes);
  std::uint32_t crc = ~before;
  for (std::int64_t i = 0; i < size; ++i)
    crc = table[(crc ^ at[i]) & 0xffu] ^ (crc >> 8);
  return ~crc;
}

}  // namespace fsknn
