#!/bin/sh
# The package built and installed into _build/library, then the main job.

. tools/common.sh
sh tools/setup.sh demo || exit 1

started=$(now)
sh tools/build.sh library || exit 1
echo "The package is in _build/library: $(($(now) - started)) seconds."

R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS
exec Rscript inst/scripts/leukaemia.R demo-output
