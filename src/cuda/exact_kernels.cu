// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/exact/emit.cu"
#include "cuda/exact/gather.cu"
#include "cuda/exact/pair_counts.cu"
#include "cuda/exact/select.cu"
#include "cuda/exact/within_pairs.cu"
