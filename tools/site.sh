#!/bin/sh
# site.sh         builds the web pages into _build/site
# site.sh check   says whether the reference index has every page
# Uses no network, and the package as tools/build.sh has built it; without CUDA,
# as the pages need no GPU.

. tools/common.sh

if [ "$1" = check ]; then
  exec Rscript -e 'pkgdown::check_pkgdown()'
fi

sh tools/setup.sh test || exit 1
: "${FSKNN_CUDA_ARCH=none}"
export FSKNN_CUDA_ARCH
sh tools/build.sh library || exit 1
R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS
rm -rf "$build/site"
Rscript -e '
  options(pkgdown.internet = FALSE)
  pkgdown::build_site(
    devel = FALSE, install = FALSE, new_process = FALSE, preview = FALSE
  )
' || exit 1
echo "The pages are in _build/site; begin with index.html."
