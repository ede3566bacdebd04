// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/cover/cover.cpp"
#include "core/cover/cover_bound.cpp"
#include "core/cover/cover_problem.cpp"
#include "core/cover/cover_search.cpp"
#include "core/cover/discretise.cpp"
