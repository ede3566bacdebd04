#pragma once
namespace fsknn { namespace cuda {
inline unsigned shared_address(const void* p) { return static_cast<unsigned>(static_cast<const unsigned char*>(p) - emu::dynamic_shared); }
inline void copy_16_bytes(unsigned to, const void* from) { std::memcpy(emu::dynamic_shared + to, from, 16); }
inline void commit_copies() {}
template <int pending> inline void wait_for_copies() {}
} }
