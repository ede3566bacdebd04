// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/graph/cut.cpp"
#include "core/graph/diffusion.cpp"
#include "core/graph/edge_counts.cpp"
#include "core/graph/joined.cpp"
#include "core/graph/shared.cpp"
#include "core/graph/spanning.cpp"
