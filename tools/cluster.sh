#!/bin/sh
# What `make cluster` runs: the package built and installed into _build/library,
# and the cases of tools/cluster beside a real Slurm. FSKNN_CLUSTER_CASES says
# which: `short`, `all`, `kills 30`, or the names of some (see cluster/run.R).

. tools/common.sh
sh tools/setup.sh demo cluster || exit 1
sh tools/build.sh library || exit 1

R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS
exec sh tools/slurm.sh Rscript tools/cluster/run.R ${FSKNN_CLUSTER_CASES-all}
