// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "cuda/exact/distance.cu"
#include "cuda/exact/lane_tiles.cu"
