// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cpu/filter/bin_table.cpp"
#include "cpu/filter/bits.cpp"
#include "cpu/filter/byte_products.cpp"
#include "cpu/filter/byte_unit.cpp"
#include "cpu/filter/bytes_pay.cpp"
#include "cpu/filter/centred_products.cpp"
#include "cpu/filter/no_filter.cpp"
#include "cpu/filter/pack.cpp"
#include "cpu/filter/sample.cpp"
#include "cpu/filter/scale.cpp"
#include "cpu/filter/second_test.cpp"
#include "cpu/filter/two_values.cpp"
