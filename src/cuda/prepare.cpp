// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/prepare/held_rows.cpp"
#include "cuda/prepare/panel_stream.cpp"
#include "cuda/prepare/prepared_rows.cpp"
#include "cuda/prepare/preparer.cpp"
