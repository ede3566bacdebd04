# Read by the scripts beside it, which make starts in the repository's root.

root=$(pwd -P)
build=$root/_build
library=$build/library

jobs=${FSKNN_JOBS:-$(nproc 2> /dev/null || getconf _NPROCESSORS_ONLN)}

# make's own flags would reach the makes that R starts.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
MAKEFLAGS=-j$jobs
export MAKEFLAGS

# Under LANG=C R shows all that is not ASCII as <U+....>.
case $(locale charmap 2> /dev/null) in
  UTF-8) ;;
  *)
    utf8=$(locale -a 2> /dev/null | sed -n '/^C\.utf-\{0,1\}8$/Ip' | head -n 1)
    if [ -n "$utf8" ]; then
      LC_ALL=$utf8
      export LC_ALL
    fi ;;
esac

# A small machine has no /etc/timezone, and R then warns at every turn.
if [ -z "${TZ-}" ] && [ ! -e /etc/timezone ] && [ ! -e /etc/localtime ]; then
  TZ=UTC
  export TZ
fi

# With what tests compile: a switch that forgets a value of its enumeration is an
# error (nvcc's host compiler hears it from nvcc's own variable).
strict="-Wswitch -Werror=switch"
nvcc_strict="-Xcompiler -Wswitch,-Werror=switch"

# C++ tests that take half of the time between them: what runs the tests again
# in another way leaves them out.
long_cpp_tests="no pair is dropped at*,each row has its own distance*,\
*over the samples that both have,pairs within a distance are those*,\
rows of 0 and 1 have*,the same of rows far from 0*,\
pairs are counted in the bins*,*bounds hold for near-empty rows"

now() {
  date +%s
}

# All that the package is built from; $@ are further tests for find.
list_sources() {
  find DESCRIPTION LICENSE NAMESPACE NEWS.md configure cleanup .Rbuildignore \
    R src inst man data vignettes -type f \
    ! -name '*.o' ! -name '*.so' ! -path src/Makevars \
    ! -path src/cuda/build_info.hpp "$@" 2> /dev/null
}

# The tarball that R CMD build writes, newest first.
find_tarball() {
  ls -t "$1"/fsknn_*.tar.gz 2> /dev/null | head -n 1
}
