// Prints a hash of the bits that core computes for hard matrices. Built twice,
// with the compiler free to contract products into sums and not: the prints
// must be the same.

#include <cstdio>
#include <cstring>

#include "../cases.hpp"
#include "core/brute.hpp"
#include "core/errors.hpp"
#include "core/scan.hpp"

int main() {
  using namespace fsknn;
  std::uint64_t hash = 14695981039346656037u;
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
      for (const double x : distance) {
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
      }
    }
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  return 0;
}
