// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/rows/filled.cpp"
#include "core/rows/latent.cpp"
#include "core/rows/masked_points.cpp"
#include "core/rows/metafeatures.cpp"
#include "core/rows/order.cpp"
#include "core/rows/prepared.cpp"
#include "core/rows/scan.cpp"
#include "core/rows/vanishing.cpp"
