#pragma once

// The random walk of a diffusion map (Coifman and Lafon 2006) on a graph of
// neighbours, and the products that its eigenvectors are found by.
//
//   W_ij = exp(-u_ij / epsilon)          u: squared lengths, scaled or not
//   q_i  = 1 + sum_j W_ij                density: a point counts itself
//   A_ij = W_ij / (q_i q_j)^alpha        i != j: the walk does not stay
//   d_i  = sum_j A_ij
//   S_ij = A_ij / sqrt(d_i d_j)          S v = lambda v, psi = v / sqrt(d)
//
// All sums are taken in one order, whatever the number of threads.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/graph/joined.hpp"

namespace fsknn {

enum class LengthKind {
  distance,    ///< u = distance^2
  correlation  ///< distance is 1 - r: u = 2 (1 - r)
};

/// The graph's lengths become u, infinite beyond a double: W is 0 there. They
/// are divided by 2^unit before. scales: of the points, or none: then u is
/// divided by those of both ends.
void square_lengths(JoinedGraph& graph, LengthKind kind, int unit,
                    const std::vector<double>& scales, int num_threads);

/// The unit of square_lengths() for lengths from `nearest` to `farthest`, both
/// above 0: 0 where their squares are far from the ends of double's range.
int unit_of_lengths(double nearest, double farthest);

/// Of one epsilon: sums over all pairs i != j in both directions.
struct KernelSum {
  double kernel = 0.0;  ///< of W
  double moment = 0.0;  ///< of W u / epsilon
};
std::vector<KernelSum> kernel_sums(const JoinedGraph& squared,
                                   const std::vector<double>& epsilon,
                                   int num_threads, Progress* progress);

/// T_degree((S - c) / e), c and e being middle and half width of [low, high]:
/// what is in that interval stays within -1 and 1, what is above grows. With
/// degree 1 on [-1, 1] it is S.
struct ChebyshevFilter {
  int degree = 1;
  double low = -1.0, high = 1.0;
};

/// A step of Lanczos' method. product: S now, which becomes the next vector,
/// of length 1. All: [size].
struct LanczosStep {
  double own = 0.0;     ///< of the tridiagonal matrix: on its diagonal
  double beside = 0.0;  ///< and after it
};
LanczosStep lanczos_step(double* product, const double* now,
                         const double* before, double beside_before,
                         std::int64_t size, int num_threads);

class Walk {
 public:
  /// Takes the graph, whose lengths are u, apart.
  Walk(JoinedGraph squared, double epsilon, double alpha, int num_threads);

  // Of each point.
  const std::vector<double>& density() const { return density_; }
  const std::vector<double>& degree() const { return degree_; }

  /// The points row by row: one component after another, by their first
  /// points, and within each so that neighbours are near (breadth first).
  const std::vector<std::int32_t>& order() const { return order_; }
  /// Where components begin among the rows, and the end. Weights that are too
  /// small for a double join nothing.
  const std::vector<std::int64_t>& first_rows() const { return first_row_; }

  std::int64_t num_rows(std::int64_t component) const {
    return first_row_[static_cast<std::size_t>(component) + 1] -
           first_row_[static_cast<std::size_t>(component)];
  }

  /// x, out: [rows of the component]. The eigenvector sqrt(d) of eigenvalue 1,
  /// which is known, has eigenvalue -2 here, below all others.
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
  std::vector<std::int64_t> start_;  ///< of each row
  Buffer<std::int32_t> column_;      ///< a row, counted over all components
  Buffer<double> value_;
  std::vector<double> constant_;  ///< sqrt(d), of length 1 in each component
};

}  // namespace fsknn
