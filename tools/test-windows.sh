#!/bin/sh
# test-windows.sh [NAME ...]   compiles the core and the CPU engine for Windows by
# mingw-w64, and runs the C++ tests, all or those of these files (test_lease), under
# Wine. It needs Debian's g++-mingw-w64-x86-64-posix and wine.

. tools/common.sh

compiler=x86_64-w64-mingw32-g++-posix
for program in $compiler wine; do
  command -v $program > /dev/null || {
    echo "test-windows.sh: there is no $program" >&2
    exit 1
  }
done
windows=$build/windows
mkdir -p "$windows/include" && ln -sfn /usr/include/doctest "$windows/include/doctest" ||
  exit 1
rm -f "$windows/tests.exe"
# These options are as in configure.
make -s -C tests/cpp build="$windows" program=tests.exe only="$*" CXX="$ccache $compiler" \
  CXXFLAGS="-O1 -g0 -D_FILE_OFFSET_BITS=64 -I$windows/include \
    -mfma -Wa,-muse-unaligned-vector-move" LDLIBS=-static "$windows/tests.exe" || exit 1
WINEPREFIX=$windows/wine
WINEDEBUG=-all
export WINEPREFIX WINEDEBUG
exec wine "$windows/tests.exe" --no-colors=true
