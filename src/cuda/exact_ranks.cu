// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/exact/rank_candidates.cu"
#include "cuda/exact/short_lists.cu"
