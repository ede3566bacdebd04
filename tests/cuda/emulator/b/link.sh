T=ROOT
g++ -o emu_test emu_test.o emu.o stubs.o obj/*/*.o plan/*.o $T/core/*.o $(ls $T/core/*/*.o 2>/dev/null) $T/cpu/*.o $T/cpu/*/*.o -fopenmp -pthread 2>&1 | grep -v warning | head -30
