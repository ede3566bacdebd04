// Written by configure.
#pragma once

namespace fsknn {

// Why there is no CUDA in this build, a clause with its full stop; else empty.
inline constexpr const char* cuda_reason = "";
// Version of the toolkit, and GPU architectures compiled for; empty without.
inline constexpr const char* cuda_toolkit = "13.0";
inline constexpr const char* cuda_architectures = "90a";

}  // namespace fsknn
