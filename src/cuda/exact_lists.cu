// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/exact/candidates.cu"
#include "cuda/exact/rerank.cu"
#include "cuda/exact/shared_pairs.cu"
