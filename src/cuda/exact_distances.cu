// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/exact/distance.cu"
#include "cuda/exact/lane_tiles.cu"
