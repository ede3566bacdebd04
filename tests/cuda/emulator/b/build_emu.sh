cd SCRATCH
S=ROOT
C="ccache g++ -std=gnu++17 -O2 -mavx2 -mfma -w -ffp-contract=off -fopenmp -DNDEBUG -ISCRATCH -ISCRATCH -IROOT"
mkdir -p plan
(cd $S && for f in cuda/plan/*.cpp cuda/filter/float_bound.cpp; do $C -I. -c $f -o SCRATCH$(basename $f .cpp).o || echo FAIL $f; done)
$C -I$S -c stubs.cpp -o stubs.o -include emu.hpp
$C -I$S -I$S/../tests/cpp -c emu_test.cpp -o emu_test.o
ls emu.o || g++ -O2 -std=gnu++17 -I. -IROOT -c emu.cpp -o emu.o
