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

# A small machine has no /etc/timezone, and R then warns each time.
if [ -z "${TZ-}" ] && [ ! -e /etc/timezone ] && [ ! -e /etc/localtime ]; then
  TZ=UTC
  export TZ
fi

# A switch that forgets a value of its enumeration is an error.
strict="-Wswitch -Werror=switch"
nvcc_strict="-Xcompiler -Wswitch,-Werror=switch"

# C++ tests that take half of the time between them: what runs the tests again
# in another way leaves them out.
long_cpp_tests="no pair is dropped at*,each row has its own distance*,\
*over the samples that both have,pairs within a distance are those*,\
rows of 0 and 1 have*,the same of rows far from 0*,\
pairs are counted in the bins*,*bounds hold for near-empty rows"

# make_cpp ARGUMENT...: the C++ tests, linked with what R has compiled.
make_cpp() {
  make -s -C tests/cpp build="$build/cpp" compiled="$build/package/src" \
    CXX="$ccache g++" CXXFLAGS=-O2 TESTFLAGS=-O1 "$@"
}

# make_by_clang ARGUMENT...: the same by clang, which compiles all of it.
make_by_clang() {
  make -s -C tests/cpp build="$build/clang" CXX="$ccache clang++" \
    CXXFLAGS="-O2 -g0 -Wno-unknown-warning-option" TESTFLAGS=-O1 "$@"
}

now() {
  date +%s
}

# All that the package is built from; $@ are further tests for find.
list_sources() {
  find DESCRIPTION LICENSE NAMESPACE NEWS.md configure cleanup R src inst man data \
    vignettes -type f ! -name '*.[od]' ! -name '*.so' ! -path src/Makevars \
    ! -path src/cuda/build_info.hpp "$@" 2> /dev/null
}

# What one build has compiled with ccache the others take from there, also the one
# without OpenMP: ccache does not look at -fopenmp itself. That one needs
# CCACHE_NODIRECT, by which ccache sees how _OPENMP changes a file's text; only
# team.cpp has pragmas (check-arrows.sh), and these within #ifdef.
CCACHE_DIR=${CCACHE_DIR-$build/ccache}
CCACHE_NOHASHDIR=1
CCACHE_IGNOREOPTIONS=-fopenmp
CCACHE_NAMESPACE=fsknn
export CCACHE_DIR CCACHE_NOHASHDIR CCACHE_IGNOREOPTIONS CCACHE_NAMESPACE
ccache=$(command -v ccache)

# use_makevars NAME [LINE]: writes _build/NAME for GNU make and has R read it after
# the user's own file: ccache where it is there, and no debugging symbols, which are
# a fifth of a compiler's time. By -MMD a *.d file beside each object names the
# headers that it was made from.
use_makevars() {
  : "${users_makevars=${R_MAKEVARS_USER-$HOME/.R/Makevars}}"
  R_MAKEVARS_USER=$build/$1
  export R_MAKEVARS_USER users_makevars
  mkdir -p "$build" && cat > "$R_MAKEVARS_USER" <<END
-include $users_makevars
cached = \$(if \$(filter %ccache,\$(firstword \$(1))),,$ccache) \$(1)
CXX17 := \$(call cached,\$(CXX17))
CXX17FLAGS := \$(filter-out -g,\$(CXX17FLAGS)) $strict -MMD -MP
ifneq (\$(NVCC),)
NVCC := \$(call cached,\$(NVCC))
NVCC_FLAGS += -MMD -MP $nvcc_strict
endif
ifdef OBJECTS
\$(SHLIB) \$(filter-out \$(CUDA_ABSENT),\$(CUDA_OBJECTS)): \$(wildcard Makevars)
-include \$(OBJECTS:.o=.d)
# R's own rule would make each by the preprocessor.
\$(OBJECTS:.o=.d): ;
endif
$2
END
}

# The tarball that R CMD build writes, newest first.
find_tarball() {
  ls -t "$1"/fsknn_*.tar.gz 2> /dev/null | head -n 1
}
