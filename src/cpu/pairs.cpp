// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cpu/search/connectivity.cpp"
#include "cpu/search/leading_vector.cpp"
#include "cpu/search/listed_pairs.cpp"
#include "cpu/search/module_statistics.cpp"
#include "cpu/search/pair_correlations.cpp"
#include "cpu/search/pair_histogram.cpp"
#include "cpu/search/within.cpp"
#include "cpu/search/within_search.cpp"
