// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/search/within.cpp"
#include "cuda/search/count_pairs.cpp"
#include "cuda/search/pair_chunks.cpp"
#include "cuda/search/within_by_filter.cpp"
#include "cuda/search/within_work.cpp"
