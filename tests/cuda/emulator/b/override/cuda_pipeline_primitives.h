#pragma once
inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); }
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(int) {}
