// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/search/tile_tree.cu"
#include "cuda/search/tree_schedule.cu"
