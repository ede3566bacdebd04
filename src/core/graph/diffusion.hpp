#pragma once

// The random walk of a diffusion map (Coifman and Lafon 2006) on a graph of
// neighbours, and the matrix products for its eigenvectors.
//
//   W_ij = exp(-u_ij / epsilon)          u: squared lengths, may be scaled
//   q_i  = 1 + sum_j W_ij                density, including the point itself
//   A_ij = W_ij / (q_i q_j)^alpha        i != j: no self-transitions
//   d_i  = sum_j A_ij
//   S_ij = A_ij / sqrt(d_i d_j)          S v = lambda v, psi = v / sqrt(d)
//
// The order of every sum is the same for any number of threads.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/graph/joined.hpp"

namespace fsknn {

enum class LengthKind {
  distance,    ///< u = distance^2
  correlation  ///< distance is 1 - r: u = 2 (1 - r)
};

/// Replaces the graph's lengths by u. Before squaring they are divided by
/// 2^unit. Squares beyond double's range are infinite, so that W is 0. scales:
/// one per point, or empty; u is divided by those of both ends.
void square_lengths(JoinedGraph& graph, LengthKind kind, int unit,
                    const std::vector<double>& scales, int num_threads);

/// The unit of square_lengths() for lengths from `nearest` to `farthest`, both
/// positive. It is 0 if their squares are far from the limits of double's
/// range.
int unit_of_lengths(double nearest, double farthest);

/// For one epsilon: sums over all pairs i != j in both directions.
struct KernelSum {
  double kernel = 0.0;  ///< of W
  double moment = 0.0;  ///< of W u / epsilon
};
std::vector<KernelSum> kernel_sums(const JoinedGraph& squared,
                                   const std::vector<double>& epsilon,
                                   int num_threads, Progress* progress);

/// The polynomial T_degree((S - c) / e), where c is the centre and e the half
/// width of [low, high]. Eigenvalues in that interval stay within -1 and 1;
/// larger ones grow. With degree 1 on [-1, 1] it is S.
struct ChebyshevFilter {
  int degree = 1;
  double low = -1.0, high = 1.0;
};

/// A step of the Lanczos method. product: S times `now`; it becomes the next
/// vector, of length 1. All are [size].
struct LanczosStep {
  double own = 0.0;     ///< diagonal entry of the tridiagonal matrix
  double beside = 0.0;  ///< the entry after it
};
LanczosStep lanczos_step(double* product, const double* now,
                         const double* before, double beside_before,
                         std::int64_t size, int num_threads);

class Walk {
 public:
  /// Consumes the graph, whose lengths are u.
  Walk(JoinedGraph squared, double epsilon, double alpha, int num_threads);

  // [points]
  const std::vector<double>& density() const { return density_; }
  const std::vector<double>& degree() const { return degree_; }

  /// The points in the order of rows: one component after another, by their
  /// first points. Within a component the order is breadth-first, so that
  /// neighbours are near.
  const std::vector<std::int32_t>& order() const { return order_; }
  /// The first row of each component, and the end. Weights that underflow to 0
  /// do not connect points.
  const std::vector<std::int64_t>& first_rows() const { return first_row_; }

  std::int64_t num_rows(std::int64_t component) const {
    return first_row_[static_cast<std::size_t>(component) + 1] -
           first_row_[static_cast<std::size_t>(component)];
  }

  /// x, out: [rows of the component]. The known eigenvector sqrt(d) of
  /// eigenvalue 1 gets the eigenvalue -2, below all others.
  void apply(std::int64_t component, const ChebyshevFilter& filter,
             const double* x, double* out, int num_threads,
             Progress* progress) const;

  /// S of the component, [rows x rows].
  std::vector<double> dense(std::int64_t component) const;

 private:
  void find_components(const JoinedGraph& weights);
  void fill_rows(const JoinedGraph& weights, int num_threads);

  std::vector<double> density_, degree_;
  std::vector<std::int32_t> order_;
  std::vector<std::int64_t> first_row_{0};
  std::vector<std::int64_t> start_;  ///< [rows + 1]
  Buffer<std::int32_t> column_;      ///< row numbers over all components
  Buffer<double> value_;
  std::vector<double> constant_;  ///< sqrt(d), of length 1 per component
};

}  // namespace fsknn
