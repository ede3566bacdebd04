// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/search/search.cpp"
#include "cuda/search/between.cpp"
#include "cuda/search/block_pair.cpp"
#include "cuda/search/engine.cpp"
#include "cuda/search/held_points.cpp"
#include "cuda/search/point_store.cpp"
