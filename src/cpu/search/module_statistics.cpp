#include "cpu/search/module_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/scaling.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/leading_vector.hpp"
#include "cpu/search/turns.hpp"

namespace fsknn {
namespace cpu {
namespace {

// This many sets are measured together. They share the reads of the reference,
// which has one number and one sign for each pair of a module.
constexpr std::int64_t kSets = 8;
// This many rows are compared with each other row while that is in a cache.
constexpr std::int64_t kRowsAtOnce = 8;

/// Pairs (i, j) with j < i, by rows of whole lanes. Row i has i entries.
class Triangle {
 public:
  Triangle() = default;
  explicit Triangle(std::int64_t size) : start_{0} {
    for (std::int64_t i = 0; i < size; ++i)
      start_.push_back(start_.back() + padded_features(i));
    values_ = Buffer<double>(start_.back());
    std::fill_n(values_.data(), start_.back(), 0.0);
  }
  double* row(std::int64_t i) {
    return values_.data() + start_[static_cast<std::size_t>(i)];
  }
  const double* row(std::int64_t i) const {
    return values_.data() + start_[static_cast<std::size_t>(i)];
  }

 private:
  std::vector<std::int64_t> start_;
  Buffer<double> values_;
};

/// The sums that correlations over pairs need.
struct PairSums {
  double r = 0.0, square = 0.0;
};

/// What is known of a module in the reference.
struct ModuleReference {
  std::int64_t size = 0;
  Triangle r, sign;
  PairSums sums;
  std::vector<double> kim, kme;
};

class Adjacency {
 public:
  Adjacency(NetworkType type, double power) : type_(type), power_(power) {
    if (power == std::floor(power) && power <= 64.0)
      whole_ = static_cast<int>(power);
  }
  double operator()(double r) const {
    double s = std::fabs(r);
    if (type_ == NetworkType::both_signs) s = (1.0 + r) / 2.0;
    if (type_ == NetworkType::positive) s = std::max(r, 0.0);
    s = std::min(std::max(s, 0.0), 1.0);
    if (whole_ == 0) return std::pow(s, power_);
    double product = 1.0;
    for (int left = whole_; left > 0; left /= 2, s *= s)
      if (left % 2 == 1) product *= s;
    return product;
  }

 private:
  const NetworkType type_;
  const double power_;
  int whole_ = 0;
};

double sign_of(double r) { return r > 0.0 ? 1.0 : r < 0.0 ? -1.0 : 0.0; }

/// Pearson's r from sums of n pairs of values.
double correlation_of(double n, double product, const PairSums& a,
                      const PairSums& b) {
  const double spread = (a.square - a.r * a.r / n) * (b.square - b.r * b.r / n);
  return (product - a.r * b.r / n) / std::sqrt(spread);
}

double correlation_of(const std::vector<double>& a, const double* b) {
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b, b + a.size(), 0.0) / n;
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

/// Some points of the rows, in order, and what is summed over their pairs.
class PointSet {
 public:
  PointSet(const UnitRows& rows, std::int64_t most)
      : rows_(rows),
        values_(most * rows.padded),
        transposed_(rows.features * padded_features(most)),
        kim_(static_cast<std::size_t>(most)),
        kme_(static_cast<std::size_t>(most)) {}

  void take(const std::int32_t* points, std::int64_t count) {
    size_ = count;
    width_ = padded_features(count);
    std::fill_n(transposed_.data(), rows_.features * width_, 0.0);
    for (std::int64_t i = 0; i < count; ++i) {
      const double* const from = rows_.first + points[i] * rows_.padded;
      std::copy_n(from, rows_.padded, values_.data() + i * rows_.padded);
      for (std::int64_t f = 0; f < rows_.features; ++f)
        transposed_[f * width_ + i] = from[f];
    }
    std::fill(kim_.begin(), kim_.end(), 0.0);
    sums = PairSums();
    adjacency = 0.0;
  }

  /// Adds the pairs of point i with those before it.
  void add_row(std::int64_t i, const double* r, const Adjacency& adjacency_of) {
    double own = 0.0;
    for (std::int64_t j = 0; j < i; ++j) {
      const double a = adjacency_of(r[j]);
      kim_[static_cast<std::size_t>(j)] += a;
      own += a;
      sums.r += r[j];
      sums.square += r[j] * r[j];
    }
    kim_[static_cast<std::size_t>(i)] = own;
    adjacency += own;
  }

  /// The correlations of the first `count` points with their eigengene.
  void find_kme(const Kernels& kernels, std::int64_t count) {
    const FirstRows first = {values_.data(), rows_.padded,   transposed_.data(),
                             width_,         rows_.features, count};
    leading_loadings(kernels, first, kme_.data());
  }

  const double* values() const { return values_.data(); }
  std::int64_t size() const { return size_; }
  const double* kim() const { return kim_.data(); }
  const double* kme() const { return kme_.data(); }

  PairSums sums;
  double adjacency = 0.0;

 private:
  const UnitRows rows_;
  Buffer<double> values_;      ///< [points x padded]
  Buffer<double> transposed_;  ///< [features x width_]
  std::int64_t size_ = 0, width_ = 0;
  std::vector<double> kim_, kme_;
};

/// Compares the pairs of several sets of the same size, row by row.
class SetPass {
 public:
  SetPass(const Kernels& kernels, const UnitRows& rows, std::int64_t most,
          std::int64_t num_sets)
      : kernels_(kernels), rows_(rows), block_(kRowsAtOnce * most) {
    for (std::int64_t s = 0; s < num_sets; ++s) sets.emplace_back(rows, most);
    for (std::int64_t i = 0; i < kRowsAtOnce; ++i)
      r_.emplace_back(num_sets * padded_features(most));
    pairs_.reserve(static_cast<std::size_t>(kRowsAtOnce * most));
  }

  /// Calls row(i, r, stride) for each point i of the first `count` sets: r has
  /// its correlations with those before it, set after set.
  template <class Row>
  void run(std::int64_t count, Row row) {
    const std::int64_t size = sets[0].size();
    for (std::int64_t from = 0; from < size; from += kRowsAtOnce) {
      const std::int64_t to = std::min(size, from + kRowsAtOnce);
      pairs_.clear();
      for (std::int64_t j = 0; j < to; ++j)
        for (std::int64_t i = std::max(from, j + 1); i < to; ++i)
          pairs_.push_back(
              {static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)});
      const std::int64_t num_pairs = static_cast<std::int64_t>(pairs_.size());
      for (std::int64_t s = 0; s < count; ++s) {
        const double* const values = sets[static_cast<std::size_t>(s)].values();
        exact_in_turns(kernels_, Accumulation::dot, values, values,
                       rows_.padded, pairs_.data(), num_pairs, block_.data());
        for (std::int64_t p = 0; p < num_pairs; ++p) {
          const Pair& pair = pairs_[static_cast<std::size_t>(p)];
          r_of(pair.row, from)[s * padded_features(pair.row) + pair.column] =
              block_[p];
        }
        for (std::int64_t i = from; i < to; ++i)
          clear_padding(r_of(i, from) + s * padded_features(i), i,
                        padded_features(i));
      }
      for (std::int64_t i = from; i < to; ++i)
        row(i, r_of(i, from), padded_features(i));
    }
  }

  std::vector<PointSet> sets;

 private:
  double* r_of(std::int64_t i, std::int64_t from) {
    return r_[static_cast<std::size_t>(i - from)].data();
  }

  const Kernels& kernels_;
  const UnitRows rows_;
  Buffer<double> block_;
  std::vector<Buffer<double>> r_;
  std::vector<Pair> pairs_;
};

class Preservation {
 public:
  Preservation(const ModuleQuestion& question, ModuleStatistics* observed,
               ModuleStatistics* null)
      : q_(question),
        kernels_(choose_kernels(question.instruction_set)),
        adjacency_(question.type, question.power),
        observed_(observed),
        null_(null),
        references_(question.in_reference.size()) {}

  void run(Progress* progress) {
    const std::int64_t num_modules =
        static_cast<std::int64_t>(references_.size());
    run_pieces(num_modules, q_.num_threads, {progress, 0.0, 0.1}, [&] {
      return [&](std::int64_t module) {
        const std::size_t m = static_cast<std::size_t>(module);
        references_[m] = reference_of(q_.in_reference[m]);
        SetPass pass(kernels_, q_.test, references_[m].size, 1);
        pass.sets[0].take(q_.in_test[m].data(), references_[m].size);
        measure(pass, 1, {m}, observed_ + module);
      };
    });
    std::vector<std::size_t> all(references_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    run_pieces((q_.num_sets + kSets - 1) / kSets, q_.num_threads,
               {progress, 0.1, 1.0}, [&] { return NullWorker(*this, all); });
  }

 private:
  class NullWorker {
   public:
    NullWorker(const Preservation& of, const std::vector<std::size_t>& all)
        : of_(of),
          all_(all),
          pass_(of.kernels_, of.q_.test, of.q_.most, kSets) {}
    void operator()(std::int64_t piece) {
      const std::int64_t first = piece * kSets;
      const std::int64_t count = std::min(kSets, of_.q_.num_sets - first);
      for (std::int64_t s = 0; s < count; ++s)
        pass_.sets[static_cast<std::size_t>(s)].take(
            of_.q_.sets + (first + s) * of_.q_.most, of_.q_.most);
      of_.measure(pass_, count, all_,
                  of_.null_ + first * static_cast<std::int64_t>(all_.size()));
    }

   private:
    const Preservation& of_;
    const std::vector<std::size_t>& all_;
    SetPass pass_;
  };

  ModuleReference reference_of(const std::vector<std::int32_t>& points) const {
    ModuleReference made;
    made.size = static_cast<std::int64_t>(points.size());
    made.r = Triangle(made.size);
    made.sign = Triangle(made.size);
    SetPass pass(kernels_, q_.reference, made.size, 1);
    PointSet& set = pass.sets[0];
    set.take(points.data(), made.size);
    pass.run(1, [&](std::int64_t i, const double* r, std::int64_t) {
      set.add_row(i, r, adjacency_);
      std::copy_n(r, i, made.r.row(i));
      std::transform(r, r + i, made.sign.row(i), sign_of);
    });
    made.sums = set.sums;
    made.kim.assign(set.kim(), set.kim() + made.size);
    set.find_kme(kernels_, made.size);
    made.kme.assign(set.kme(), set.kme() + made.size);
    return made;
  }

  /// Measures modules on the first points of each set. out: [modules x count].
  void measure(SetPass& pass, std::int64_t count,
               const std::vector<std::size_t>& modules,
               ModuleStatistics* out) const {
    const std::size_t num_modules = modules.size();
    // Sums over pairs: [modules x sets].
    std::vector<double> product(num_modules * kSets), agreed(product.size());
    Pair pairs[kSets];
    for (std::int32_t s = 0; s < kSets; ++s) pairs[s] = {0, s};
    pass.run(count, [&](std::int64_t i, const double* r, std::int64_t stride) {
      for (std::int64_t s = 0; s < count; ++s)
        pass.sets[static_cast<std::size_t>(s)].add_row(i, r + s * stride,
                                                       adjacency_);
      double sums[kSets];
      for (std::size_t m = 0; m < num_modules; ++m) {
        const ModuleReference& module = references_[modules[m]];
        if (i >= module.size) continue;
        const auto add = [&](const Triangle& triangle, double* to) {
          if (i == 0) return;
          kernels_.exact(Accumulation::dot, triangle.row(i), r, stride, pairs,
                         count, sums);
          for (std::int64_t s = 0; s < count; ++s) to[s] += sums[s];
        };
        add(module.r, product.data() + m * kSets);
        add(module.sign, agreed.data() + m * kSets);
      }
      poll_after(static_cast<double>(i * count) *
                 static_cast<double>(2 * num_modules + 8));
      for (std::int64_t s = 0; s < count; ++s) {
        bool has_kme = false;
        PointSet& set = pass.sets[static_cast<std::size_t>(s)];
        for (std::size_t m = 0; m < num_modules; ++m) {
          const ModuleReference& module = references_[modules[m]];
          if (i + 1 != module.size) continue;
          if (!has_kme) set.find_kme(kernels_, i + 1);
          has_kme = true;
          const std::size_t at = m * kSets + static_cast<std::size_t>(s);
          out[s * static_cast<std::int64_t>(num_modules) +
              static_cast<std::int64_t>(m)] =
              statistics(module, set, product[at], agreed[at]);
        }
      }
    });
  }

  static ModuleStatistics statistics(const ModuleReference& module,
                                     const PointSet& set, double product,
                                     double agreed) {
    const double n = static_cast<double>(module.size);
    const double num_pairs = n * (n - 1.0) / 2.0;
    ModuleStatistics out;
    double explained = 0.0, kme = 0.0;
    for (std::size_t i = 0; i < module.kme.size(); ++i) {
      explained += set.kme()[i] * set.kme()[i];
      kme += sign_of(module.kme[i]) * set.kme()[i];
    }
    out.explained = explained / n;
    out.mean_kme = std::fabs(kme / n);
    out.mean_correlation = agreed / num_pairs;
    out.mean_adjacency = set.adjacency / num_pairs;
    out.kim_correlation = correlation_of(module.kim, set.kim());
    // An eigengene has no sign of its own.
    out.kme_correlation = std::fabs(correlation_of(module.kme, set.kme()));
    out.pair_correlation =
        correlation_of(num_pairs, product, module.sums, set.sums);
    return out;
  }

  const ModuleQuestion& q_;
  const Kernels& kernels_;
  const Adjacency adjacency_;
  ModuleStatistics* const observed_;
  ModuleStatistics* const null_;
  std::vector<ModuleReference> references_;
};

}  // namespace

void preserve_modules(const ModuleQuestion& question,
                      ModuleStatistics* observed, ModuleStatistics* null,
                      Progress* progress) {
  Preservation(question, observed, null).run(progress);
}

}  // namespace cpu
}  // namespace fsknn
