// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_contrast.cpp"
#include "bind_permute.cpp"
#include "bind_permuted_statistics.cpp"
#include "bind_resamples.cpp"
#include "bind_triples.cpp"
