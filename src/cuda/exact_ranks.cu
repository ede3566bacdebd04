// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "cuda/exact/rank_candidates.cu"
#include "cuda/exact/short_lists.cu"
