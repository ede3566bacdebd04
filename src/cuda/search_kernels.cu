// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/search/exchange.cu"
#include "cuda/search/groups_by_filter.cu"
#include "cuda/search/panel_correlations.cu"
#include "cuda/search/row_range_phase.cu"
#include "cuda/search/wide_filter.cu"
#include "cuda/search/within_chunks.cu"
