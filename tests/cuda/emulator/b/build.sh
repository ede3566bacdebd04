#!/bin/bash
# build.sh: the worktree with the emulated GPU into SCRATCH
echo 19 > /proc/self/autogroup 2>/dev/null
stage=SCRATCH; lib=SCRATCH; mkdir -p $stage $lib
rsync -a --delete --exclude .git --exclude '*.o' --exclude '*.so' --exclude '*.emu.cpp' --exclude tests/cpp/build ROOT $stage/
cp ROOT $stage/src/cuda/
sed -e 's|@NVCC@|SCRATCH|; s|@NVCC_FLAGS@||; s|@NVCC_ARCHS@||; s|@NVCC_ONE_ARCH@||; s|@CONTRACT_FLAG@|-ffp-contract=off|; s|@CUDA_OBJECTS@|$(CUDA_PRESENT)|; s|@CUDA_LIBS@|SCRATCH|' $stage/src/Makevars.in > $stage/src/Makevars
grep -n "CUDA_PLAIN)" $stage/src/Makevars.in
grep -n "@" $stage/src/Makevars
rm -f $stage/configure $stage/cleanup
find $stage -name '*.o' -delete
export CCACHE_BASEDIR=$stage CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=20G CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
cd $stage && MAKEFLAGS=-j2 R CMD INSTALL --no-docs --no-test-load --library=$lib . > SCRATCH 2>&1; tail -3 SCRATCH | cut -c1-300
