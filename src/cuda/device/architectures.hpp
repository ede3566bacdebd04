#pragma once

// Which GPUs the code of a build runs on. Pure text and numbers, so that it can
// be tested without a GPU.

#include <cstdlib>
#include <sstream>
#include <string>

namespace fsknn {
namespace cuda {

/// architectures: what configure compiled for, as "80 90a ptx120". Machine code
/// runs on its own major version from its minor version up; with the suffix a
/// on that very version only, with f on that family; PTX on all from there up.
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

/// Whether GPUs of 9.0 have the code of warpgroups, which is that of 90a alone.
inline bool has_hopper_code(const std::string& architectures) {
  std::istringstream words(architectures);
  std::string word;
  while (words >> word)
    if (word == "90a") return true;
  return false;
}

}  // namespace cuda
}  // namespace fsknn
