#!/bin/sh
# The package built and installed into _build/library, then the main job.

. tools/common.sh
sh tools/setup.sh demo || exit 1

# A GPU is seen by its driver's tool, as configure does, or its device file.
# Without one the CUDA part would only take time to compile.
if ! nvidia-smi -L > /dev/null 2>&1 && [ ! -e /dev/nvidia0 ]; then
  echo "No NVIDIA GPU is seen here: the package is built for the CPU."
  : "${FSKNN_CONFIGURE_ARGS=--without-cuda}"
  export FSKNN_CONFIGURE_ARGS
fi

started=$(now)
sh tools/build.sh library || exit 1
echo "Package built and installed in _build/library: $(($(now) - started)) seconds."

R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS
exec Rscript inst/scripts/leukaemia.R demo-output
