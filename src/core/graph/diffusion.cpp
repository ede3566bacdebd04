#include "core/graph/diffusion.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// Rows per piece of work.
constexpr std::int64_t kBlock = 4096;

std::int64_t num_blocks(std::int64_t rows) {
  return (rows + kBlock - 1) / kBlock;
}

/// Calls work(first, end) for all rows, in blocks, on several threads.
template <class Work>
void each_block(std::int64_t rows, int num_threads, Progress* progress,
                Work work) {
  run_pieces(num_blocks(rows), num_threads, {progress, 0.0, 1.0}, [&] {
    return [&](std::int64_t block) {
      work(block * kBlock, std::min(rows, (block + 1) * kBlock));
    };
  });
}

int threads_for(std::int64_t entries, int num_threads) {
  return useful_threads(num_threads, 5.0 * static_cast<double>(entries));
}

/// Sums the products of each block, then the blocks in order. This loses less
/// in sums of millions of terms, and does not depend on the number of threads.
double dot(const double* a, const double* b, std::int64_t size,
           int num_threads) {
  std::vector<double> parts(static_cast<std::size_t>(num_blocks(size)));
  each_block(size, num_threads, nullptr,
             [&](std::int64_t first, std::int64_t end) {
               double part = 0.0;
               for (std::int64_t i = first; i < end; ++i) part += a[i] * b[i];
               parts[static_cast<std::size_t>(first / kBlock)] = part;
             });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

/// Sets to[i] to value(i).
template <class Value>
void fill_each(double* to, std::int64_t size, int num_threads, Value value) {
  each_block(size, num_threads, nullptr,
             [&](std::int64_t first, std::int64_t end) {
               for (std::int64_t i = first; i < end; ++i) to[i] = value(i);
             });
}

}  // namespace

int unit_of_lengths(double nearest, double farthest) {
  constexpr int most = 450;
  const int low = std::ilogb(nearest), high = std::ilogb(farthest);
  return low >= -most && high < most ? 0 : (low + high) / 2;
}

void square_lengths(JoinedGraph& graph, LengthKind kind, int unit,
                    const std::vector<double>& scales, int num_threads) {
  each_block(
      graph.num_points(), threads_for(graph.length.size(), num_threads),
      nullptr, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          for (std::int64_t e = graph.row(i); e < graph.row(i + 1); ++e) {
            double a = std::ldexp(graph.length[e], -unit), b = a;
            if (kind == LengthKind::correlation) b = 2.0, a = std::max(a, 0.0);
            if (!scales.empty()) {
              // The smaller end first, so that both rows of a pair have the
              // same bits.
              const std::size_t j = static_cast<std::size_t>(graph.index[e]);
              const std::size_t at = static_cast<std::size_t>(i);
              a /= scales[std::min(at, j)];
              b /= scales[std::max(at, j)];
            }
            graph.length[e] = a * b;
          }
        }
      });
}

std::vector<KernelSum> kernel_sums(const JoinedGraph& squared,
                                   const std::vector<double>& epsilon,
                                   int num_threads, Progress* progress) {
  const std::int64_t n = squared.num_points();
  const std::size_t size = epsilon.size();
  std::vector<KernelSum> parts(static_cast<std::size_t>(num_blocks(n)) * size);
  const double work = 10.0 * static_cast<double>(squared.index.size()) *
                      static_cast<double>(size);
  each_block(
      n, useful_threads(num_threads, work), progress,
      [&](std::int64_t first, std::int64_t end) {
        KernelSum* const part =
            parts.data() + static_cast<std::size_t>(first / kBlock) * size;
        for (std::int64_t i = first; i < end; ++i) {
          for (std::int64_t e = squared.row(i); e < squared.row(i + 1); ++e) {
            if (squared.index[e] < i) continue;
            for (std::size_t at = 0; at < size; ++at) {
              const double u = squared.length[e] / epsilon[at];
              const double w = std::exp(-u);
              part[at].kernel += w;
              // Beyond double's range u is infinite, and w is 0.
              if (w > 0.0) part[at].moment += w * u;
            }
          }
        }
      });
  std::vector<KernelSum> sums(size);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    sums[p % size].kernel += 2.0 * parts[p].kernel;
    sums[p % size].moment += 2.0 * parts[p].moment;
  }
  return sums;
}

Walk::Walk(JoinedGraph squared, double epsilon, double alpha, int num_threads) {
  const std::int64_t n = squared.num_points();
  JoinedGraph weights = std::move(squared);
  density_.resize(static_cast<std::size_t>(n));
  degree_.resize(static_cast<std::size_t>(n));
  num_threads = threads_for(5 * weights.index.size(), num_threads);
  each_block(
      n, num_threads, nullptr, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          double sum = 0.0;
          for (std::int64_t e = weights.row(i); e < weights.row(i + 1); ++e) {
            weights.length[e] = std::exp(-weights.length[e] / epsilon);
            sum += weights.length[e];
          }
          density_[static_cast<std::size_t>(i)] = 1.0 + sum;
        }
      });
  std::vector<double> power(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < power.size(); ++i)
    power[i] = std::pow(density_[i], alpha);
  each_block(
      n, num_threads, nullptr, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          const std::size_t at = static_cast<std::size_t>(i);
          double sum = 0.0;
          for (std::int64_t e = weights.row(i); e < weights.row(i + 1); ++e) {
            const std::size_t j = static_cast<std::size_t>(weights.index[e]);
            weights.length[e] /= power[at] * power[j];
            sum += weights.length[e];
          }
          degree_[at] = sum;
        }
      });
  find_components(weights);
  fill_rows(weights, num_threads);
}

void Walk::find_components(const JoinedGraph& weights) {
  const std::int32_t n = static_cast<std::int32_t>(weights.num_points());
  order_.reserve(static_cast<std::size_t>(n));
  std::vector<bool> seen(static_cast<std::size_t>(n), false);
  for (std::int32_t i = 0; i < n; ++i) {
    if (seen[static_cast<std::size_t>(i)]) continue;
    std::size_t next = order_.size();
    seen[static_cast<std::size_t>(i)] = true;
    order_.push_back(i);
    for (; next < order_.size(); ++next) {
      const std::int64_t at = order_[next];
      poll_after(500.0);
      for (std::int64_t e = weights.row(at); e < weights.row(at + 1); ++e) {
        const std::size_t j = static_cast<std::size_t>(weights.index[e]);
        if (seen[j] || !(weights.length[e] > 0.0)) continue;
        seen[j] = true;
        order_.push_back(weights.index[e]);
      }
    }
    first_row_.push_back(static_cast<std::int64_t>(order_.size()));
  }
}

void Walk::fill_rows(const JoinedGraph& weights, int num_threads) {
  const std::int64_t n = weights.num_points();
  std::vector<std::int32_t> row_of(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < n; ++row)
    row_of[static_cast<std::size_t>(order_[static_cast<std::size_t>(row)])] =
        static_cast<std::int32_t>(row);
  const auto point_at = [&](std::int64_t row) {
    return order_[static_cast<std::size_t>(row)];
  };
  start_.assign(static_cast<std::size_t>(n) + 1, 0);
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t i = point_at(row);
    std::int64_t size = 0;
    for (std::int64_t e = weights.row(i); e < weights.row(i + 1); ++e)
      size += weights.length[e] > 0.0;
    start_[static_cast<std::size_t>(row) + 1] =
        start_[static_cast<std::size_t>(row)] + size;
  }
  column_ = Buffer<std::int32_t>(start_.back());
  value_ = Buffer<double>(start_.back());
  each_block(
      n, num_threads, nullptr, [&](std::int64_t first, std::int64_t end) {
        std::vector<std::pair<std::int32_t, double>> found;
        for (std::int64_t row = first; row < end; ++row) {
          const std::int64_t i = point_at(row);
          const double own = std::sqrt(degree_[static_cast<std::size_t>(i)]);
          found.clear();
          for (std::int64_t e = weights.row(i); e < weights.row(i + 1); ++e) {
            if (!(weights.length[e] > 0.0)) continue;
            const std::size_t j = static_cast<std::size_t>(weights.index[e]);
            const double other = std::sqrt(degree_[j]);
            // Divides by the larger factor first, because the product may
            // underflow. Both rows of a pair have the same bits.
            found.push_back(
                {row_of[j], weights.length[e] / std::max(own, other) /
                                std::min(own, other)});
          }
          std::sort(found.begin(), found.end());
          std::int64_t to = start_[static_cast<std::size_t>(row)];
          for (const auto& entry : found) {
            column_[to] = entry.first;
            value_[to++] = entry.second;
          }
        }
      });
  constant_.resize(static_cast<std::size_t>(n));
  for (std::size_t c = 0; c + 1 < first_row_.size(); ++c) {
    double sum = 0.0;
    for (std::int64_t row = first_row_[c]; row < first_row_[c + 1]; ++row)
      sum += degree_[static_cast<std::size_t>(point_at(row))];
    for (std::int64_t row = first_row_[c]; row < first_row_[c + 1]; ++row)
      constant_[static_cast<std::size_t>(row)] =
          sum > 0.0
              ? std::sqrt(degree_[static_cast<std::size_t>(point_at(row))] /
                          sum)
              : 1.0;
  }
}

void Walk::apply(std::int64_t component, const ChebyshevFilter& filter,
                 const double* x, double* out, int num_threads,
                 Progress* progress) const {
  const std::int64_t first_row =
      first_row_[static_cast<std::size_t>(component)];
  const std::int64_t rows = num_rows(component);
  const double* const constant = constant_.data() + first_row;
  const double middle = 0.5 * (filter.high + filter.low);
  const double half = 0.5 * (filter.high - filter.low);
  const std::int64_t entries =
      start_[static_cast<std::size_t>(first_row + rows)] -
      start_[static_cast<std::size_t>(first_row)];
  // Vector operations are cheap relative to products.
  const int of_vectors = threads_for(rows, num_threads);
  num_threads = threads_for(entries, num_threads);
  // to = factor ((S - middle) / half) of - to
  const auto multiply = [&](const double* of, double* to, double factor) {
    const double scale = factor / half;
    const bool first_time = factor == 1.0;
    const double* const shifted = of - first_row;
    each_block(
        rows, num_threads, progress, [&](std::int64_t first, std::int64_t end) {
          for (std::int64_t i = first; i < end; ++i) {
            const std::size_t at = static_cast<std::size_t>(first_row + i);
            double even = 0.0, odd = 0.0;
            std::int64_t e = start_[at];
            for (; e + 1 < start_[at + 1]; e += 2) {
              even += value_[e] * shifted[column_[e]];
              odd += value_[e + 1] * shifted[column_[e + 1]];
            }
            if (e < start_[at + 1]) even += value_[e] * shifted[column_[e]];
            const double next = scale * (even + odd - middle * of[i]);
            to[i] = first_time ? next : next - to[i];
          }
        });
  };

  const double share = dot(constant, x, rows, of_vectors);
  Buffer<double> before(rows), now(rows);
  fill_each(before.data(), rows, of_vectors,
            [&](std::int64_t i) { return x[i] - share * constant[i]; });
  multiply(before.data(), now.data(), 1.0);
  for (int degree = 1; degree < filter.degree; ++degree) {
    multiply(now.data(), before.data(), 2.0);
    std::swap(before, now);
  }
  // Removes the part along `constant` that rounding brought back and powers may
  // have amplified.
  const double rest = dot(constant, now.data(), rows, of_vectors);
  const double change = -2.0 * share - rest;
  fill_each(out, rows, of_vectors,
            [&](std::int64_t i) { return now[i] + change * constant[i]; });
}

LanczosStep lanczos_step(double* product, const double* now,
                         const double* before, double beside_before,
                         std::int64_t size, int num_threads) {
  num_threads = threads_for(size, num_threads);
  LanczosStep step;
  step.own = dot(product, now, size, num_threads);
  fill_each(product, size, num_threads, [&](std::int64_t i) {
    return product[i] - step.own * now[i] - beside_before * before[i];
  });
  step.beside = std::sqrt(dot(product, product, size, num_threads));
  fill_each(product, size, num_threads,
            [&](std::int64_t i) { return product[i] / step.beside; });
  return step;
}

std::vector<double> Walk::dense(std::int64_t component) const {
  const std::int64_t first_row =
      first_row_[static_cast<std::size_t>(component)];
  const std::int64_t rows = num_rows(component);
  std::vector<double> all(static_cast<std::size_t>(rows * rows), 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::size_t at = static_cast<std::size_t>(first_row + i);
    for (std::int64_t e = start_[at]; e < start_[at + 1]; ++e)
      all[static_cast<std::size_t>(i * rows + column_[e] - first_row)] =
          value_[e];
  }
  return all;
}

}  // namespace fsknn
