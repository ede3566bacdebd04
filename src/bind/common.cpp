// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_backends.cpp"
#include "bind_common.cpp"
#include "bind_faults.cpp"
