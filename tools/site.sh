#!/bin/sh
# site.sh         builds the web pages into _build/site
# site.sh check   says whether the reference index has every page, and the home page's
#                 picture one caption: what follows it, not its description too
# Uses no network, and the package as tools/build.sh has built it. Nor do the
# pages: they can be read from disk.

. tools/common.sh

if [ "$1" = check ]; then
  Rscript -e 'pkgdown::check_pkgdown()' || exit 1
  if pandoc -f markdown -t html README.md | grep '<figcaption'; then
    echo "README.md: what follows a picture must be in its paragraph."
    exit 1
  fi
  exit
fi

sh tools/setup.sh site || exit 1
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
Rscript tools/site/from-disk.R "$build/site" || exit 1
echo "The pages are in _build/site; begin with index.html."
