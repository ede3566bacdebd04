// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cpu/missing/masked_differences.cpp"
#include "cpu/missing/masked_filter.cpp"
#include "cpu/missing/masked_pass.cpp"
#include "cpu/missing/masked_search.cpp"
#include "cpu/missing/masked_tables.cpp"
#include "cpu/missing/masked_within.cpp"
