// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/search/all_pairs.cpp"
#include "cuda/search/candidate_store.cpp"
#include "cuda/search/filter_phase.cpp"
#include "cuda/search/graph_by_filter_panels.cpp"
#include "cuda/search/lists_by_filter.cpp"
#include "cuda/search/redo_held.cpp"
#include "cuda/search/redo_panels.cpp"
#include "cuda/search/rerank_phase.cpp"
#include "cuda/search/rounds.cpp"
