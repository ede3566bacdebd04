// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/device/check.cpp"
#include "cuda/device/devices.cpp"
#include "cuda/device/driver.cpp"
#include "cuda/device/spares.cpp"
#include "cuda/device/staging.cpp"
#include "cuda/exact/answer.cpp"
