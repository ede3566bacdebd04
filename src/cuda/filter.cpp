// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/filter/byte_filter.cpp"
#include "cuda/filter/half_filter.cpp"
#include "cuda/filter/pair_filter.cpp"
#include "cuda/missing/find_masked.cpp"
#include "cuda/triples/triple_device.cpp"
#include "cuda/triples/triple_scanner.cpp"
