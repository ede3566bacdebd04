// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/prepare/ranks.cu"
#include "cuda/prepare/row_kernels.cu"
#include "cuda/prepare/row_makers.cu"
