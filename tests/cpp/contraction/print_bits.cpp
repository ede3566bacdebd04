// Prints a hash of the bits that core computes for hard matrices. It is built
// twice: the compiler may, or may not, contract products into sums. Both prints
// must be equal.

#include <cstdio>
#include <cstring>

#include "../cases.hpp"
#include "core/base/errors.hpp"
#include "core/contract/covariates.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"

namespace {

using namespace fsknn;

void add_to(std::uint64_t& hash, double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  hash = (hash ^ bits) * 1099511628211u;
}

/// Adds the basis of covariates and the residuals of rows.
void add_adjusted(std::uint64_t& hash) {
  const Matrix m = normal("covariates", 29, 5, 3);
  std::vector<double> weights;
  for (int f = 0; f < 29; ++f) weights.push_back(1.0 + f % 5);
  const SampleWeights given(weights);
  for (const SampleWeights* const w :
       std::vector<const SampleWeights*>{nullptr, &given}) {
    const SampleCovariates covariates(m.values.data(), 29, 5, w);
    for (std::int64_t i = 0; i < covariates.view().vectors * 32; ++i)
      add_to(hash, covariates.view().basis[i]);
    RowRecipe recipe;
    recipe.form = RowForm::centred_unit;
    recipe.covariates = covariates.view();
    if (w != nullptr) recipe.weights = w->view();
    for (unsigned seed = 1; seed < 40; ++seed) {
      Matrix row = normal("row", 32, 1, seed);
      clear_padding(row.values.data(), 29, 32);
      RowScratch scratch;
      prepare_row<ScalarLanes>(recipe, scratch, row.values.data(), 29, 32);
      for (const double x : row.values) add_to(hash, x);
    }
  }
}

}  // namespace

int main() {
  std::uint64_t hash = 14695981039346656037u;
  add_adjusted(hash);
  for (const Matrix& hard : hard_cases(40, 29)) {
    for (const MetricEntry& metric : all_metrics()) {
      Matrix m = hard;
      if (metric.least_overlap != nullptr)
        for (double& x : m.values) x = std::fabs(x);
      Request r;
      r.k = 39;
      r.metric = &metric;
      std::vector<std::int32_t> index(40 * 39);
      std::vector<double> distance(40 * 39);
      Neighbours out;
      out.rows = 40;
      out.index = index.data();
      out.distance = distance.data();
      try {
        brute_force(r, m.source(), nullptr, out);
      } catch (const RangeFailure&) {
        continue;
      }
      for (const double x : distance) add_to(hash, x);
    }
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  return 0;
}
