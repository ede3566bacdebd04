// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/missing/masked_filter.cu"
#include "cuda/missing/placed_rows.cu"
#include "cuda/missing/product_filter.cu"
#include "cuda/missing/product_rows.cu"
