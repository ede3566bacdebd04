// Compiled at once: see "What is compiled" in CONTRIBUTING.md.

#include "cuda/plan/plan.cpp"
#include "cuda/filter/float_bound.cpp"
#include "cuda/filter/whole_bound.cpp"
#include "cuda/plan/all_pairs.cpp"
#include "cuda/plan/filter_blocks.cpp"
#include "cuda/plan/filter_shape.cpp"
#include "cuda/plan/group_pairs.cpp"
#include "cuda/plan/number_forms.cpp"
#include "cuda/plan/rounds.cpp"
#include "cuda/plan/streaming.cpp"
#include "cuda/plan/stretches.cpp"
#include "cuda/plan/triple_plan.cpp"
