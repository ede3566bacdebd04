// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_between.cpp"
#include "bind_checkpoint.cpp"
#include "bind_folder.cpp"
#include "bind_shards.cpp"
