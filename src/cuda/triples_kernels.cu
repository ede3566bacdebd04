// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/triples/triple_bits.cu"
#include "cuda/triples/triple_codes.cu"
#include "cuda/triples/triple_counts.cu"
#include "cuda/triples/triple_exact.cu"
#include "cuda/triples/triple_filter.cu"
#include "cuda/triples/triple_rows.cu"
#include "cuda/triples/triple_tables.cu"
