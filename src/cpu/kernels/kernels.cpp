#include "cpu/kernels/kernels.hpp"

#include <stdexcept>

#ifdef FSKNN_NEONDOT_KERNELS
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#endif

namespace fsknn {
namespace cpu {

#ifdef FSKNN_NEONDOT_KERNELS
namespace {

struct NeonFeatures {
  bool dot, i8mm;
};

/// The extensions that the system reports for this processor; on an unknown
/// system those for which everything is compiled.
NeonFeatures neon_features() {
#if defined(__linux__)
  // HWCAP_ASIMDDP and HWCAP2_I8MM are written as numbers, because headers may
  // be older than the system.
  return {(getauxval(AT_HWCAP) >> 20 & 1) != 0,
          (getauxval(AT_HWCAP2) >> 13 & 1) != 0};
#elif defined(__APPLE__)
  const auto has = [](const char* name) {
    int value = 0;
    std::size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
  };
  return {has("hw.optional.arm.FEAT_DotProd"),
          has("hw.optional.arm.FEAT_I8MM")};
#else
  NeonFeatures found = {false, false};
#ifdef __ARM_FEATURE_DOTPROD
  found.dot = true;
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
  found.i8mm = true;
#endif
  return found;
#endif
}

}  // namespace
#endif

const std::vector<const Kernels*>& available_kernels() {
  static const std::vector<const Kernels*> available = [] {
    std::vector<const Kernels*> found = {&kBaselineKernels};
#ifdef FSKNN_X86_KERNELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      found.push_back(&kAvx2Kernels);
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      found.push_back(&kAvx512Kernels);
      if (__builtin_cpu_supports("avx512vnni")) {
        found.push_back(&kAvx512VnniKernels);
        if (__builtin_cpu_supports("avx512vpopcntdq"))
          found.push_back(&kAvx512PopcntKernels);
      }
    }
#endif
#ifdef FSKNN_NEON_KERNELS
    found.push_back(&kNeonKernels);
#ifdef FSKNN_NEONDOT_KERNELS
    const NeonFeatures features = neon_features();
    if (features.dot) {
      found.push_back(&kNeonDotKernels);
#ifdef FSKNN_NEONI8MM_KERNELS
      if (features.i8mm) found.push_back(&kNeonI8mmKernels);
#endif
    }
#endif
#endif
    return found;
  }();
  return available;
}

const Kernels& choose_kernels(const std::string& name) {
  const std::string set = name.substr(0, name.find('/'));
  if (set == "auto") return *available_kernels().back();
  for (const Kernels* kernels : available_kernels())
    if (set == kernels->name) return *kernels;
  throw std::invalid_argument("no instruction set \"" + name + "\" here");
}

}  // namespace cpu
}  // namespace fsknn
