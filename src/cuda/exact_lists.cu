// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "cuda/exact/candidates.cu"
#include "cuda/exact/settle.cu"
#include "cuda/exact/shared_pairs.cu"
