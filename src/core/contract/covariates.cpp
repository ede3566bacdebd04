#include "core/contract/covariates.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/base/poll.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace {

// Relative to the square of a column's length: about 1e-7 of the length, as in
// lm().
constexpr double kLeastNew = 0x1p-46;

double dot(const Buffer<double>& a, const Buffer<double>& b) {
  poll_after(static_cast<double>(a.size()));
  return accumulate<ScalarLanes, Dot>(a.data(), b.data(), a.size());
}

/// x -> x - v beta (v x), with beta = 2 / |v|^2.
struct Reflection {
  Buffer<double> v;  ///< zeros before the feature it maps to
  double beta;

  void apply(Buffer<double>& x) const {
    const double by = -(dot(v, x) * beta);
    for (std::int64_t f = 0; f < x.size(); ++f) x[f] = std::fma(v[f], by, x[f]);
  }
};

/// Reflections that map columns, one after the other, to the first features.
class Reflections {
 public:
  Reflections(std::int64_t num_features, std::int64_t padded)
      : num_features_(num_features), padded_(padded) {}

  /// x: a column of length 1; destroyed. Returns false, and adds nothing, if x
  /// is in the span of the columns before.
  bool add(Buffer<double>& x) {
    const std::int64_t at = size();
    if (at == num_features_) return false;
    for (const Reflection& r : reflections_) r.apply(x);
    std::fill_n(x.data(), at, 0.0);
    const double left = sum_of_squares<ScalarLanes>(x.data(), padded_);
    if (!(left > kLeastNew)) return false;
    Reflection r;
    r.v = Buffer<double>(padded_);
    std::copy_n(x.data(), padded_, r.v.data());
    const double length = std::sqrt(left);
    r.v[at] = x[at] < 0.0 ? x[at] - length : x[at] + length;
    r.beta = 2.0 / dot(r.v, r.v);
    reflections_.push_back(std::move(r));
    return true;
  }

  std::int64_t size() const {
    return static_cast<std::int64_t>(reflections_.size());
  }

  /// Sets row j of `basis` to the vector that is mapped to feature j.
  void fill(double* basis) const {
    Buffer<double> x(padded_);
    for (std::int64_t j = 0; j < size(); ++j) {
      std::fill_n(x.data(), padded_, 0.0);
      x[j] = 1.0;
      for (std::int64_t i = j; i >= 0; --i)
        reflections_[static_cast<std::size_t>(i)].apply(x);
      std::copy_n(x.data(), padded_, basis + j * padded_);
    }
  }

 private:
  std::int64_t num_features_, padded_;
  std::vector<Reflection> reflections_;
};

/// Writes the column, centred as rows are and scaled to length 1, to `x`.
/// Returns false if it is constant.
bool centre_column(const double* column, std::int64_t d,
                   const FeatureWeights& weights, Buffer<double>& x) {
  if (!std::all_of(column, column + d,
                   [](double c) { return std::isfinite(c); }))
    throw std::invalid_argument("a covariate is not finite");
  const auto ends = std::minmax_element(column, column + d);
  if (*ends.first == *ends.second) return false;
  std::copy_n(column, d, x.data());
  clear_padding(x.data(), d, x.size());
  if (weights.given())
    centre_weighted_twice<ScalarLanes>(x.data(), d, x.size(), weights);
  else
    centre_twice<ScalarLanes>(x.data(), d, x.size());
  const double total = weights.given() ? weights.total : static_cast<double>(d);
  if (!(sum_of_squares<ScalarLanes>(x.data(), x.size()) > kLeastLeft * total))
    return false;
  scale_to_length_one<ScalarLanes>(x.data(), x.size());
  return true;
}

}  // namespace

SampleCovariates::SampleCovariates(const double* values,
                                   std::int64_t num_features,
                                   std::int64_t count,
                                   const SampleWeights* weights)
    : num_features_(num_features) {
  if (num_features < 1 ||
      (weights != nullptr && weights->num_features() != num_features))
    throw std::invalid_argument("there must be a weight for each feature");
  const FeatureWeights of_features =
      weights != nullptr ? weights->view() : FeatureWeights();
  Buffer<double> x(padded_features(num_features));
  for (std::int64_t f = 0; f < x.size(); ++f)
    x[f] = f >= num_features     ? 0.0
           : of_features.given() ? of_features.root[f]
                                 : 1.0;
  scale_to_length_one<ScalarLanes>(x.data(), x.size());
  Reflections reflections(num_features, x.size());
  reflections.add(x);
  for (std::int64_t j = 0; j < count; ++j)
    if (centre_column(values + j * num_features, num_features, of_features,
                      x) &&
        reflections.add(x))
      kept_.push_back(j);
  if (kept_.empty()) return;
  vectors_ = (reflections.size() + kVectorsAtOnce - 1) / kVectorsAtOnce *
             kVectorsAtOnce;
  basis_ = Buffer<double>(vectors_ * x.size());
  std::fill_n(basis_.data(), basis_.size(), 0.0);
  reflections.fill(basis_.data());
}

}  // namespace fsknn
