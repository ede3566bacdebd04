// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_cover.cpp"
#include "bind_diffusion.cpp"
#include "bind_discretise.cpp"
#include "bind_mst.cpp"
#include "bind_shared.cpp"
