// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cpu/search/search.cpp"
#include "cpu/search/between.cpp"
#include "cpu/search/engine.cpp"
#include "cpu/search/few.cpp"
#include "cpu/search/held.cpp"
#include "cpu/search/keys.cpp"
#include "cpu/search/keys_pay.cpp"
#include "cpu/search/outside.cpp"
#include "cpu/search/similarity_bytes.cpp"
#include "cpu/search/streamed.cpp"
#include "cpu/search/tree.cpp"
