#pragma once

// The GPUs on which the code of a build runs. Only text and numbers, so that it
// can be tested without a GPU.

#include <cstdlib>
#include <sstream>
#include <string>

namespace fsknn {
namespace cuda {

/// architectures: those for which configure compiled, as "80 90a ptx120".
/// Machine code runs on GPUs of its major version from its minor version up.
/// With the suffix a it runs on that version only, with f on that family. PTX
/// runs on all GPUs from its version up.
inline bool runs_on(const std::string& architectures, int major, int minor) {
  std::istringstream words(architectures);
  std::string word;
  while (words >> word) {
    const bool ptx = word.compare(0, 3, "ptx") == 0;
    const std::string digits = ptx ? word.substr(3) : word;
    const int version = std::atoi(digits.c_str());
    const int its_major = version / 10, its_minor = version % 10;
    const bool later_minor = major == its_major && minor >= its_minor;
    if (digits.back() == 'a' ? major == its_major && minor == its_minor
                             : later_minor || (ptx && major > its_major))
      return true;
  }
  return false;
}

/// Whether the build has the code of warpgroups for GPUs of 9.0; only 90a has
/// it.
inline bool has_hopper_code(const std::string& architectures) {
  std::istringstream words(architectures);
  std::string word;
  while (words >> word)
    if (word == "90a") return true;
  return false;
}

}  // namespace cuda
}  // namespace fsknn
