// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "cuda/missing/difference_filter.cu"
#include "cuda/missing/masked_exact.cu"
