// Weights of samples: which are rejected, and that no row loses its length.

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "core/contract/prepare.hpp"
#include "core/contract/weights.hpp"

using namespace fsknn;

TEST_CASE("weights that would let squares vanish are refused") {
  const double infinity = HUGE_VAL;
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{},
                                        {1.0, 0.0},
                                        {1.0, -1.0},
                                        {1.0, infinity},
                                        {1.0, std::nan("")},
                                        {1.0, 1e-16},
                                        {1.0, 1e-320},
                                        {0x1p53, 1.0, 2.0},
                                        {1e300, 1e-300}})
    CHECK_THROWS_AS(SampleWeights{weights}, std::invalid_argument);
  for (const double unit : {1.0, 1e-300, 0x1p-1022, 1e290})
    CHECK_NOTHROW(SampleWeights({unit, unit * 0x1p52, unit * 3.0}));
}

TEST_CASE("a row that hardly varies where weights are least has length 1") {
  for (const double scale : {1.0, 1e-300, 1e300}) {
    std::vector<double> weights(11, 0x1p52);
    weights[5] = weights[6] = 1.0;
    std::vector<double> x(16, 0.0);
    for (int f = 0; f < 11; ++f) x[static_cast<std::size_t>(f)] = scale;
    x[5] = std::nextafter(scale, 0.0);
    const SampleWeights given(weights);
    prepare_weighted_unit<ScalarLanes>(x.data(), 11, 16, given.view());
    double square = 0.0;
    for (const double z : x) square += z * z;
    CHECK(square == doctest::Approx(1.0).epsilon(1e-12));
  }
}
