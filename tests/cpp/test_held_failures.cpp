// A search of held points fails or is stopped at any time: the next search
// gives the answer of the definition.

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/search/brute.hpp"
#include "cpu/search/held.hpp"

using namespace fsknn;

namespace {

/// Rows that are generated at each read, which fails once.
class FailsOnce final : public RowSource {
 public:
  struct Failed {};
  FailsOnce(const Matrix& m, std::int64_t reads)
      : rows_(m.source()), left_(reads) {}
  std::int64_t num_points() const override { return rows_.num_points(); }
  std::int64_t num_features() const override { return rows_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    if (left_-- == 0) throw Failed();
    rows_.read(first, count, out, stride);
  }
  bool made_when_read() const override { return true; }
  bool has_failed() const { return left_ < 0; }

 private:
  const MatrixSource<double> rows_;
  mutable std::atomic<std::int64_t> left_;
};
constexpr std::int64_t kNever = std::int64_t{1} << 40;

Matrix fit(const MetricEntry& metric, Matrix m, double by) {
  for (double& x : m.values)
    x = by * (metric.least_overlap != nullptr ? std::fabs(x) : x);
  return m;
}

}  // namespace

TEST_CASE("after a search that failed, held points answer as before") {
  for (const MetricEntry& metric : metrics_of_numbers()) {
    CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign));
    const Matrix m = fit(metric, normal("normal", 150, 13, 5), 1.0);
    // The queries exceed the points' scale.
    const Matrix q = fit(metric, normal("queries", 40, 13, 30), 1.7);
    const auto fine = q.source();
    Request r;
    r.metric = &metric;
    r.k = 5;
    r.chunk_size = 48;
    Answer graph(m.n, r.k), asked(q.n, r.k);
    brute_force(r, m.source(), nullptr, graph.view);
    brute_force(r, m.source(), &fine, asked.view);
    for (const bool of_points : {true, false})
      for (const bool before : {false, true})
        for (std::int64_t reads = 0;; reads += 1 + reads / 3) {
          const FailsOnce points(m, of_points ? reads : kNever);
          const FailsOnce queries(q, of_points ? kNever : reads);
          cpu::HeldPoints held(r, points);
          Answer by_points(m.n, r.k), by_queries(q.n, r.k);
          try {
            if (before)
              held.find_neighbours(r, nullptr, by_points.view, nullptr,
                                   nullptr);
            held.find_neighbours(r, &queries, by_queries.view, nullptr,
                                 nullptr);
          } catch (const FailsOnce::Failed&) {
          }
          if (!points.has_failed() && !queries.has_failed()) break;
          CAPTURE(reads);
          CAPTURE(of_points);
          held.find_neighbours(r, nullptr, by_points.view, nullptr, nullptr);
          CHECK(by_points == graph);
          held.find_neighbours(r, &fine, by_queries.view, nullptr, nullptr);
          CHECK(by_queries == asked);
        }
  }
}
