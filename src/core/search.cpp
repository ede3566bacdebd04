// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/search/between.cpp"
#include "core/search/brute.cpp"
#include "core/search/by_groups.cpp"
#include "core/search/contrast.cpp"
#include "core/search/impute.cpp"
#include "core/search/merged_lists.cpp"
#include "core/search/permuted_statistics.cpp"
#include "core/search/plan.cpp"
#include "core/search/triples.cpp"
#include "core/search/within.cpp"
#include "core/search/within_answer.cpp"
