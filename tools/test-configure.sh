#!/bin/sh
# configure and cleanup, run on a copy with toolkits that are made up here.

root=$(pwd -P)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/fsknn
fake=$scratch/toolkit
mkdir -p "$copy/src/cuda" "$fake/bin" "$fake/lib64" "$scratch/bin" || exit 1
cp "$root/configure" "$root/cleanup" "$copy" || exit 1
cp "$root/src/Makevars.in" "$copy/src" || exit 1
touch "$fake/lib64/libcudart_static.a"
before=$(cd "$copy" && find . | sort)
unset FSKNN_CUDA_ARCH FSKNN_WITH_CUDA NVCC_CCBIN
status=0

# make_nvcc VERSION [WORDS]: an nvcc that says its version and cannot compile.
make_nvcc() {
  cat > "$fake/bin/nvcc" <<END
#!/bin/sh
case \$1 in
  --version) echo "Cuda compilation tools, release $1, V$1.1" ;;
  --list-gpu-arch) for a in 75 80 86 89 90 100 120; do echo compute_\$a; done ;;
  *) echo "fake nvcc: fatal ${2-} \$*" >&2; exit 1 ;;
esac
END
  chmod +x "$fake/bin/nvcc"
}

# make_gpus CAPABILITY...: an nvidia-smi that shows GPUs of these.
make_gpus() {
  printf '#!/bin/sh\nprintf "%%s\\n" %s\n' "$*" > "$scratch/bin/nvidia-smi"
  chmod +x "$scratch/bin/nvidia-smi"
}

# expect WORDS STATUS TEXT ARGUMENTS...: configure ends with this status and
# prints this text; cleanup then leaves nothing of it.
expect() {
  words=$1
  wanted=$2
  text=$3
  shift 3
  (cd "$copy" && ./configure "$@") > "$scratch/log" 2>&1
  got=$?
  info=$copy/src/cuda/build_info.hpp
  if [ "$wanted" = 0 ] &&
    ! { grep -q '^all: ' "$copy/src/Makevars" && [ -s "$info" ]; }
  then
    got="$got, but did not write its files"
  fi
  if grep -q '@[A-Z_]*@' "$copy/src/Makevars" 2> /dev/null; then
    got="$got, but left an @ in Makevars"
  fi
  # What it says of the reason is as good as what it prints.
  cat "$info" >> "$scratch/log" 2> /dev/null
  if [ "$got" != "$wanted" ] || ! grep -q -F -e "$text" "$scratch/log"; then
    echo "configure, $words: wanted status $wanted and '$text', got status $got and"
    cat "$scratch/log"
    status=1
  fi
  (cd "$copy" && ./cleanup)
  if [ "$(cd "$copy" && find . | sort)" != "$before" ]; then
    echo "cleanup, $words: not all is gone"
    status=1
  fi
}

# in_unit NAME: a unit includes this file.
in_unit() {
  grep -q "^#include \"$1\"" "$root"/src/*/*.cpp "$root"/src/*/*.cu
}

# Makevars.in cannot use a wildcard, so that a new file can be forgotten: it is
# in a unit, or in the list.
for file in "$root"/src/*.cpp "$root"/src/*/*.cpp "$root"/src/*/*/*.cpp \
  "$root"/src/*/*.cu "$root"/src/*/*/*.cu; do
  [ -f "$file" ] || continue
  object=${file#"$root"/src/}
  ! in_unit "$object" || continue
  object=${object%.*}.o
  case " $(sed 's/#.*//' "$root/src/Makevars.in" | tr '\n\t' '  ') " in
    *" $object "*) ;;
    *) echo "src/Makevars.in does not list $object"; status=1 ;;
  esac
done

# Each .cu has its rule, and holds or starts kernels: nvcc takes three times as
# long as the C++ compiler for what does not. Kernels stand in no header, which
# any file may include.
kernels='__global__|<<<|cudaLaunchKernel|cudaLaunchCooperative'
for file in "$root"/src/cuda/*.cu "$root"/src/cuda/*/*.cu; do
  name=${file#"$root"/src/}
  if ! grep -q -E "$kernels|^#include \".*[.]cu\"" "$file"; then
    echo "$name holds no kernel and starts none: it is a .cpp"
    status=1
  fi
  ! in_unit "$name" || continue
  rule=$(sed -n "\\|^${name%.cu}\.o: |{n;p;}" "$root/src/Makevars.in" |
    tr -d '\t')
  wanted="\$(NVCC_KERNELS) -c $name -o ${name%.cu}.o"
  if [ "$rule" != "$wanted" ]; then
    echo "src/Makevars.in: the rule of $name must be '$wanted', not '$rule'"
    status=1
  fi
done
if grep -l -E "$kernels" "$root"/src/cuda/*.hpp \
  "$root"/src/cuda/*/*.cuh "$root"/src/cuda/*/*.hpp; then
  echo "These headers hold or start kernels, which belong in a .cu."
  status=1
fi

expect "without CUDA" 0 'cuda_reason = "it was configured with --without-cuda.";' \
  --without-cuda
expect "no such toolkit" 1 "there is no /nowhere/bin/nvcc" --with-cuda=/nowhere
expect "a path that is not full" 1 "full path" --with-cuda=nowhere
make_nvcc 11.8
expect "an old toolkit" 1 "CUDA 12 or later is needed" "--with-cuda=$fake"
make_nvcc 12.4
expect "a broken toolkit" 1 "fake nvcc: fatal" "--with-cuda=$fake"
make_nvcc 13.0 "unsupported GNU version! gcc versions later than 15 are not supported! \
The nvcc flag '-allow-unsupported-compiler' can be used"
expect "a compiler that nvcc refuses" 1 \
  "(gcc versions later than 15 are not supported); the environment variable NVCC_CCBIN" \
  "--with-cuda=$fake"
NVCC_CCBIN=g++-9
export NVCC_CCBIN
expect "another compiler for nvcc" 1 "does not support the compiler g++-9 (" \
  "--with-cuda=$fake"
make_nvcc 12.4
expect "nvcc gets the other compiler" 1 "-ccbin g++-9 " "--with-cuda=$fake"
unset NVCC_CCBIN
FSKNN_CUDA_ARCH=61
export FSKNN_CUDA_ARCH
expect "an unknown architecture" 1 "knows no architecture '61' (it knows 75 80 86 89 90 100 120 )" \
  "--with-cuda=$fake"
FSKNN_CUDA_ARCH=none
expect "no architecture" 0 \
  'cuda_reason = "it was left out on request.";'
FSKNN_CUDA_ARCH="sm_80, 9.0a"
expect "two architectures" 1 "compile... 80 90a ptx80" "--with-cuda=$fake"

# Without a word from the user: for the GPUs that are seen, else for all.
every="compile... 75 80 90a 100 120 ptx120"
FSKNN_CUDA_ARCH=all
expect "all architectures" 1 "$every" "--with-cuda=$fake"
unset FSKNN_CUDA_ARCH
PATH=$scratch/bin:$PATH
export PATH
printf '#!/bin/sh\nexit 9\n' > "$scratch/bin/nvidia-smi"
chmod +x "$scratch/bin/nvidia-smi"
expect "no GPU" 1 "$every" "--with-cuda=$fake"
make_gpus 9.0 9.0
expect "two Hopper GPUs" 1 \
  "compile... 90a ptx90 (the GPUs seen here, and newer ones; FSKNN_CUDA_ARCH=all" \
  "--with-cuda=$fake"
make_gpus 9.0 7.5
expect "GPUs of two kinds" 1 "compile... 75 90a ptx90" "--with-cuda=$fake"
make_gpus 12.0 6.1
expect "a GPU that is too old beside another" 1 "compile... 120 ptx120" \
  "--with-cuda=$fake"
make_gpus 6.1
expect "a GPU that is too old" 1 "$every" "--with-cuda=$fake"
make_gpus 13.7
expect "a GPU that nvcc does not know" 1 "$every" "--with-cuda=$fake"
make_gpus "'No devices were found'"
expect "an nvidia-smi that says something else" 1 "$every" "--with-cuda=$fake"
FSKNN_CUDA_ARCH=native
export FSKNN_CUDA_ARCH
expect "no GPU where one was asked for" 1 "but nvidia-smi shows no GPU that" \
  "--with-cuda=$fake"
FSKNN_CUDA_ARCH=all
make_gpus 9.0
expect "all in spite of a GPU" 1 "$every" "--with-cuda=$fake"

# Where modules, conda and R packages have a toolkit. What cannot be used is said,
# and the search goes on.
FSKNN_CUDA_ARCH=80
unset CUDA_HOME CUDA_PATH
package=$scratch/library/cuda13.2
mkdir -p "$package/nvidia/cu13/bin" "$package/lib"
cp "$fake/bin/nvcc" "$package/nvidia/cu13/bin"
touch "$package/lib/libcudart_static.a"
for variable in CUDA_ROOT EBROOTCUDA CONDA_PREFIX; do
  export "$variable=$fake"
  expect "$variable" 0 "found nvcc... $fake/bin/nvcc (CUDA 12.4)"
  expect "$variable, why not" 0 "not used, because $fake/bin/nvcc could not compile"
  unset "$variable"
done
eval "$(sed -n '/^list_r_nvcc() {/,/^}/p' "$copy/configure")"
found=$(R_HOME=$(R RHOME) R_LIBS=$scratch/library list_r_nvcc)
if [ "$found" != "$package/nvidia/cu13/bin/nvcc" ]; then
  echo "configure, an R package: found '$found'"
  status=1
fi
CUDA_ROOT=$package/nvidia/cu13
export CUDA_ROOT
expect "the runtime of an R package" 0 "CUDA runtime... $package/lib"
unset CUDA_ROOT
FSKNN_CUDA_ARCH=all

rm "$fake/lib64/libcudart_static.a"
expect "no CUDA runtime" 1 "no libcudart belongs to" "--with-cuda=$fake"
exit $status
