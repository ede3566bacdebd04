#include "cpu/kernels.hpp"

#include <stdexcept>

namespace fsknn {
namespace cpu {

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
