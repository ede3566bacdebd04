// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_callable.cpp"
#include "bind_find.cpp"
#include "bind_held.cpp"
#include "bind_pairs.cpp"
#include "bind_plan.cpp"
#include "bind_within.cpp"
