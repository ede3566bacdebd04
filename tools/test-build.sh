#!/bin/sh
# tools/build.sh, run on a copy with an R that is made up here: demo, pages and
# R's own library share what is compiled, and who waits is told.

root=$(pwd -P)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/fsknn
mkdir -p "$copy/src" "$copy/R" "$scratch/bin" || exit 1
cp -R "$root/tools" "$copy" || exit 1
echo 'int a;' > "$copy/src/a.cpp"
echo 'Package: fsknn' > "$copy/DESCRIPTION"
# Nothing is installed for this.
printf '#!/bin/sh\nexit 0\n' > "$copy/tools/setup.sh"
unset FSKNN_CONFIGURE_ARGS FSKNN_CUDA_ARCH CUDA_HOME CUDA_PATH
status=0

# Takes a second for a file that is not there yet, and counts it.
cat > "$scratch/bin/R" <<'END'
#!/bin/sh
[ "$1 $2" != "CMD build" ] || {
  mkdir fsknn fsknn/src
  printf 'OBJECTS = a.o\n' > fsknn/src/Makevars
  for last; do :; done
  cp "$last/src/a.cpp" fsknn/src
  tar czf fsknn_0.tar.gz fsknn
  rm -r fsknn
  exit
}
library=$FAKE/library
lock=yes
for last; do
  case $last in
    --library=*) library=${last#--library=} ;;
    --no-lock) lock= ;;
  esac
done
if [ "$lock" ]; then
  mkdir -p "$library"
  mkdir "$library/00LOCK-fsknn" || exit 1
  trap 'rmdir "$library/00LOCK-fsknn"' EXIT
fi
if grep -q broken "$last/src/a.cpp"; then
  echo "a.cpp: error: broken"
  exit 1
fi
if [ ! -f "$last/src/a.o" ]; then
  sleep 1
  echo "$*" >> "$FAKE/compiled"
  touch "$last/src/a.o"
  sleep 1
fi
mkdir -p "$library/fsknn"
touch "$library/fsknn/DESCRIPTION"
END
printf '#!/bin/sh\nexit 0\n' > "$scratch/bin/Rscript"
# A machine without a GPU, and with a toolkit.
printf '#!/bin/sh\nexit 9\n' > "$scratch/bin/nvidia-smi"
printf '#!/bin/sh\nexit 0\n' > "$scratch/bin/nvcc"
chmod +x "$scratch"/bin/*
FAKE=$scratch
PATH=$scratch/bin:$PATH
FSKNN_WATCH_SECONDS=0.3
export FAKE PATH FSKNN_WATCH_SECONDS
: > "$scratch/compiled"

# expect WORDS COUNT COMMAND...: after it so many have been compiled in all.
expect() {
  words=$1
  wanted=$2
  shift 2
  (cd "$copy" && "$@") > "$scratch/log" 2>&1 || {
    echo "$words: failed"
    cat "$scratch/log"
    status=1
  }
  got=$(wc -l < "$scratch/compiled")
  if [ "$((got))" -ne "$wanted" ]; then
    echo "$words: compiled $((got)) times, not $wanted"
    status=1
  fi
}

expect_said() {
  if ! grep -q -e "$1" "$scratch/log"; then
    echo "'$1' was not said:"
    cat "$scratch/log"
    status=1
  fi
}

expect "The demo" 1 sh tools/demo.sh
expect_said "Compiling, .*; what R says is in _build/library.log"
expect_said "0 of 1 files compiled, [01] seconds"
expect_said "1 of 1 files compiled"
expect "The pages after the demo" 1 sh tools/site.sh
expect "The demo again" 1 sh tools/demo.sh
if [ ! -e /dev/nvidia0 ]; then
  expect "A library with CUDA" 2 sh tools/build.sh install
  if ! head -n 1 "$scratch/compiled" | grep -q -e --without-cuda ||
    tail -n 1 "$scratch/compiled" | grep -q -e --without-cuda
  then
    echo "The demo needs no CUDA here, and what is installed has it:"
    cat "$scratch/compiled"
    status=1
  fi
  expect "The demo after that" 2 sh tools/demo.sh
fi
# Without a toolkit there is one kind of build, also for R's own library.
rm -rf "$scratch/bin/nvcc" "$copy/_build"
: > "$scratch/compiled"
if ! ls /usr/local/cuda*/bin/nvcc > /dev/null 2>&1; then
  expect "The demo without a toolkit" 1 sh tools/demo.sh
  expect "R's own library after it" 1 sh tools/build.sh install
fi
rm -rf "$copy/_build"
: > "$scratch/compiled"
expect "A build" 1 sh tools/build.sh library
# As a build that was killed may leave it.
mkdir "$copy/_build/library/00LOCK-fsknn"
rm "$copy/_build/library-key"
expect "A build after one that was killed" 1 sh tools/build.sh library
if [ -d "$copy/_build/library/00LOCK-fsknn" ]; then
  echo "The lock of a build that was killed is still there."
  status=1
fi
sleep 1
echo 'int b;' >> "$copy/src/a.cpp"
expect "A changed source" 2 sh tools/build.sh library
sleep 1
echo 'broken' >> "$copy/src/a.cpp"
if (cd "$copy" && sh tools/build.sh library) > "$scratch/log" 2>&1; then
  echo "A build that fails is said to be one."
  status=1
fi
expect_said "a.cpp: error: broken"
expect_said "the whole of what it said is in _build/library.log"
exit $status
