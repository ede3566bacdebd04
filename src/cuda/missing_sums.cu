// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/missing/difference_filter.cu"
#include "cuda/missing/masked_exact.cu"
