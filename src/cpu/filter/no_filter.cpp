// FilterKind::none packs no row. Every pair with a point that takes neighbours
// goes to the exact step.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

const FilterForm kNoFilter = {Test::similarity,
                              Product::dot,
                              FilterNumbers::none,
                              false,
                              1,
                              0,
                              [](const FilterScale&) { return false; },
                              nullptr,
                              [](double, std::int64_t) { return 0.0; },
                              [](double, FilterRows&) {},
                              nullptr,
                              nullptr,
                              nullptr,
                              nullptr};

}  // namespace cpu
}  // namespace fsknn
