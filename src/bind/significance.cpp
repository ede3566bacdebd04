// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "bind_contrast.cpp"
#include "bind_permute.cpp"
#include "bind_resamples.cpp"
#include "bind_triples.cpp"
