// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "cuda/filter/bit_filter.cu"
#include "cuda/filter/byte_rows.cu"
#include "cuda/filter/code_filter.cu"
#include "cuda/filter/float_filter.cu"
#include "cuda/filter/half_raw_rows.cu"
#include "cuda/filter/half_unit_rows.cu"
#include "cuda/filter/self_test.cu"
#include "cuda/filter/start_elementwise.cu"
#include "cuda/filter/start_pairs.cu"
#include "cuda/filter/table_filter.cu"
#include "cuda/filter/two_value_filter.cu"
#include "cuda/filter/whole_filter.cu"
