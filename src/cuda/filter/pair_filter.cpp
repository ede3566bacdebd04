#include "cuda/filter/pair_filter.hpp"

#include <stdexcept>

#include "cuda/filter/bit_pairs.hpp"
#include "cuda/filter/byte_pairs.hpp"
#include "cuda/filter/float_pairs.hpp"
#include "cuda/filter/half_pairs.hpp"
#include "cuda/filter/whole_pairs.hpp"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_pair_filter(const MetricEntry& metric,
                                             const RowsInForm& rows) {
  check_metric(metric);
  switch (rows.form) {
    case NumberForm::none:
      throw std::logic_error("the plan has no filter to make");
    case NumberForm::byte: return make_byte_filter(metric, rows);
    case NumberForm::half: return make_half_filter(metric, rows);
    case NumberForm::bit: return make_bit_filter(metric, rows);
    case NumberForm::allele:
    case NumberForm::allele_pair: return make_table_filter(metric, rows);
    case NumberForm::code: return make_code_filter(metric, rows);
    case NumberForm::byte_difference:
    case NumberForm::word_difference: return make_whole_filter(metric, rows);
    case NumberForm::single: return make_elementwise_filter(metric, rows);
  }
  throw_unknown("number form", static_cast<int>(rows.form));
}

std::unique_ptr<PairFilter> learnt_filter(const MetricEntry& metric,
                                          RowsInForm rows,
                                          const FilterSample& sample,
                                          const Stream& stream) {
  for (; rows.form != NumberForm::none; rows = rows.otherwise()) {
    auto filter = make_pair_filter(metric, rows);
    if (filter->learn(sample.rows, sample.count, sample.undo, sample.sought,
                      stream))
      return filter;
  }
  throw std::logic_error("points suit no form of the filter");
}

}  // namespace cuda
}  // namespace fsknn
