// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cpu/triples/triples.cpp"
#include "cpu/triples/triples_apex.cpp"
#include "cpu/triples/triples_counts.cpp"
#include "cpu/triples/triples_nearest.cpp"
#include "cpu/triples/triples_pairs.cpp"
#include "cpu/triples/triples_tables.cpp"
