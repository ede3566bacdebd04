#include "cpu/search/leading_vector.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/buffer.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Lanczos' method ends if the residual of the vector is at most this share of
// its eigenvalue.
constexpr double kResidual = 1e-12;
// The residual is computed after so many steps.
constexpr std::size_t kStepsBetween = 4;

/// A symmetric tridiagonal matrix.
struct Tridiagonal {
  std::vector<double> own, beside;  ///< beside[i] is between i and i + 1

  /// Whether all eigenvalues are below x: whether all pivots of T - x are
  /// negative.
  bool is_below(double x) const {
    double pivot = own[0] - x;
    for (std::size_t i = 1; i < own.size() && pivot < 0.0; ++i)
      pivot = own[i] - x - beside[i - 1] * beside[i - 1] / pivot;
    return pivot < 0.0;
  }

  /// A number just above the largest eigenvalue.
  double bound() const {
    double low = *std::max_element(own.begin(), own.end());
    double high = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i)
      high =
          std::max(high, own[i] + (i > 0 ? std::fabs(beside[i - 1]) : 0.0) +
                             (i + 1 < own.size() ? std::fabs(beside[i]) : 0.0));
    high *= 1.0 + 1e-9;
    for (int halved = 0; halved < 60 && low < high; ++halved) {
      const double middle = low + (high - low) / 2.0;
      if (middle <= low || middle >= high) break;
      (is_below(middle) ? high : low) = middle;
    }
    return high * (1.0 + 1e-13);
  }

  /// The eigenvector of the largest eigenvalue. By inverse iteration: T - x is
  /// negative definite, so elimination needs no pivoting.
  std::vector<double> leading(double x) const {
    const std::size_t n = own.size();
    std::vector<double> vector(n, 1.0), pivot(n);
    for (int round = 0; round < 4; ++round) {
      for (std::size_t i = 0; i < n; ++i) {
        pivot[i] = own[i] - x;
        if (i == 0) continue;
        const double factor = beside[i - 1] / pivot[i - 1];
        pivot[i] -= factor * beside[i - 1];
        vector[i] -= factor * vector[i - 1];
      }
      double most = 0.0;
      for (std::size_t i = n; i-- > 0;) {
        if (i + 1 < n) vector[i] -= beside[i] * vector[i + 1];
        vector[i] /= pivot[i];
        most = std::max(most, std::fabs(vector[i]));
      }
      double square = 0.0;
      for (double& v : vector) square += (v / most) * (v / most);
      for (double& v : vector) v = v / most / std::sqrt(square);
    }
    return vector;
  }
};

/// Lanczos' method for the features x features matrix of the rows' products,
/// with each vector made orthogonal to all before it.
class Lanczos {
 public:
  Lanczos(const Kernels& kernels, const FirstRows& matrix)
      : kernels_(kernels),
        matrix_(matrix),
        most_(std::min(matrix.count, matrix.num_features)),
        vectors_((most_ + 1) * matrix.padded),
        product_(matrix.padded),
        loading_(matrix.width),
        dots_(std::max({matrix.count, matrix.num_features, most_ + 1})) {
    const std::int64_t longest = dots_.size();
    for (std::int64_t i = 0; i < longest; ++i)
      pairs_.push_back({0, static_cast<std::int32_t>(i)});
    std::fill_n(loading_.data(), matrix.width, 0.0);
  }

  void run(double* loadings) {
    start();
    for (std::int64_t step = 0;; ++step) {
      multiply(vector(step));
      const double own = orthogonalise(step);
      t_.own.push_back(own);
      const double beside = length_of(product_.data());
      const bool last =
          step + 1 == most_ || beside <= kResidual * t_.own.front();
      if (last || t_.own.size() % kStepsBetween == 0) {
        const double bound = t_.bound();
        const std::vector<double> in_basis = t_.leading(bound);
        if (last || beside * std::fabs(in_basis.back()) <= kResidual * bound) {
          finish(in_basis, loadings);
          return;
        }
      }
      t_.beside.push_back(beside);
      for (std::int64_t f = 0; f < matrix_.padded; ++f)
        vector(step + 1)[f] = product_[f] / beside;
    }
  }

 private:
  double* vector(std::int64_t i) {
    return vectors_.data() + i * matrix_.padded;
  }

  /// out: the products of `count` rows with one more.
  void dots(const double* one, const double* rows, std::int64_t padded,
            std::int64_t count, double* out) const {
    kernels_.exact(Accumulation::dot, one, rows, padded, pairs_.data(), count,
                   out);
  }

  double length_of(const double* values) const {
    double square;
    dots(values, values, matrix_.padded, 1, &square);
    return std::sqrt(square);
  }

  /// Starts with a sum of the rows whose factors follow no pattern of the data,
  /// so that it is not orthogonal to the leading vector.
  void start() {
    for (std::int64_t i = 0; i < matrix_.count; ++i) {
      const double turns = static_cast<double>(i + 1) * 0.6180339887498949;
      loading_[i] = turns - std::floor(turns) - 0.4;
    }
    turn_back();
    double length = length_of(product_.data());
    for (std::int64_t i = 0; length == 0.0; ++i) {
      std::copy_n(matrix_.rows + i * matrix_.padded, matrix_.padded,
                  product_.data());
      length = length_of(product_.data());
    }
    for (std::int64_t f = 0; f < matrix_.padded; ++f)
      vector(0)[f] = product_[f] / length;
  }

  /// product_: the matrix of products times a vector.
  void multiply(const double* by) {
    dots(by, matrix_.rows, matrix_.padded, matrix_.count, loading_.data());
    turn_back();
  }

  /// product_: the sum of the rows times loading_.
  void turn_back() {
    dots(loading_.data(), matrix_.features, matrix_.width, matrix_.num_features,
         product_.data());
    std::fill(product_.data() + matrix_.num_features,
              product_.data() + matrix_.padded, 0.0);
  }

  /// Subtracts from product_ what it has of vectors 0 to step, twice. Returns
  /// its product with the last.
  double orthogonalise(std::int64_t step) {
    double own = 0.0;
    for (int round = 0; round < 2; ++round) {
      dots(product_.data(), vectors_.data(), matrix_.padded, step + 1,
           dots_.data());
      own += dots_[step];
      for (std::int64_t v = 0; v <= step; ++v)
        for (std::int64_t f = 0; f < matrix_.padded; ++f)
          product_[f] -= dots_[v] * vector(v)[f];
    }
    return own;
  }

  void finish(const std::vector<double>& in_basis, double* loadings) {
    std::fill_n(product_.data(), matrix_.padded, 0.0);
    for (std::size_t v = 0; v < in_basis.size(); ++v)
      for (std::int64_t f = 0; f < matrix_.padded; ++f)
        product_[f] += in_basis[v] * vector(static_cast<std::int64_t>(v))[f];
    const double length = length_of(product_.data());
    dots(product_.data(), matrix_.rows, matrix_.padded, matrix_.count,
         loadings);
    for (std::int64_t i = 0; i < matrix_.count; ++i) loadings[i] /= length;
  }

  const Kernels& kernels_;
  const FirstRows& matrix_;
  const std::int64_t most_;
  Buffer<double> vectors_, product_, loading_, dots_;
  std::vector<Pair> pairs_;
  Tridiagonal t_;
};

}  // namespace

void leading_loadings(const Kernels& kernels, const FirstRows& matrix,
                      double* out) {
  Lanczos(kernels, matrix).run(out);
}

}  // namespace cpu
}  // namespace fsknn
