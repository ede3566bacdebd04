// The emulated GPU against the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include "cases.hpp"
#include "core/errors.hpp"
#include "core/metrics.hpp"
#include "core/scan.hpp"
#include "core/subset.hpp"
#include "core/within.hpp"
#include "cpu/within.hpp"
#include "cpu/pair_histogram.hpp"
#include "cuda/backend.hpp"
using namespace fsknn;
class Rows final : public WithinRows {
 public:
  void allocate(const std::vector<std::int32_t>& counts) override {
    for (const std::int32_t count : counts) {
      const std::size_t size = static_cast<std::size_t>(count);
      index_.emplace_back(size, -7); distance_.emplace_back(size, -7.0); correlation_.emplace_back(size, -7.0);
    }
  }
  Row row(std::int64_t r) override { return {index_[r].data(), distance_[r].data(), correlation_[r].data()}; }
  bool operator==(const Rows& o) const {
    if (index_ != o.index_) return false;
    for (std::size_t i = 0; i < index_.size(); ++i) {
      const std::size_t b = 8 * distance_[i].size(); if (b == 0) continue;
      if (std::memcmp(distance_[i].data(), o.distance_[i].data(), b) || std::memcmp(correlation_[i].data(), o.correlation_[i].data(), b)) return false;
    }
    return true;
  }
  double size() const { double s = 0; for (auto& r : index_) s += r.size(); return s; }
  std::vector<std::vector<std::int32_t>> index_; std::vector<std::vector<double>> distance_, correlation_;
};
static Matrix fit(const MetricEntry& metric, Matrix m) { if (metric.least_overlap != nullptr) for (double& x : m.values) x = std::fabs(x); return m; }
static std::vector<std::int64_t> unfit(const MetricEntry& metric, const Matrix& m) {
  const MatrixFacts facts = scan(m.source(), 1);
  switch (metric.row_form) {
    case RowForm::raw: return metric.least_overlap != nullptr ? facts.zero : std::vector<std::int64_t>();
    case RowForm::unit: return facts.zero;
    default: return facts.constant;
  }
}
static int bad = 0, runs = 0, filtered = 0; static double settled = 0, seen = 0;
static void same(const char* what, const Request& asked, const Within& w, const RowSource& points, const RowSource* queries) {
  Rows a, b; Stats stats; Request r = asked; r.num_threads = 1;
  try { cpu::find_within(r, w, points, queries, a, nullptr, nullptr); } catch (const RangeFailure&) { return; }
  try { cuda::find_within(r, w, points, queries, b, nullptr, &stats); } catch (const RangeFailure&) { std::printf("RANGE %s\n", what); ++bad; return; }
  ++runs; filtered += stats.filter_bits; if (stats.filter_bits) { settled += stats.pairs_exact; seen += stats.pairs_filtered; }
  if (!(a == b)) { ++bad; std::printf("DIFFERS %s filtered %d: %g and %g\n", what, stats.filter_bits, a.size(), b.size()); std::fflush(stdout); }
}
static void histogram(const char* what, Request r, const RowSource& points, const std::vector<double>& some) {
  r.num_threads = 1;
  for (const bool similarity : {false, true}) {
    PairBins bins; bins.similarity = similarity; bins.extremes = true;
    for (const double x : some) bins.breaks.push_back(similarity && !r.metric->is_unit_dot() ? 1.0 - x : similarity ? 1.0 - x : x);
    std::sort(bins.breaks.begin(), bins.breaks.end()); bins.breaks.erase(std::unique(bins.breaks.begin(), bins.breaks.end()), bins.breaks.end());
    if (bins.breaks.size() < 2) return;
    PairCounts a, b;
    try { a = cpu::count_pairs(r, bins, points, nullptr, nullptr); } catch (const RangeFailure&) { return; }
    try { b = cuda::count_pairs(r, bins, points, nullptr, nullptr); } catch (const RangeFailure&) { std::printf("RANGE hist %s\n", what); ++bad; return; }
    ++runs;
    if (a.count != b.count || a.num_points != b.num_points || a.least != b.least || a.largest != b.largest) { ++bad; std::printf("HISTOGRAM %s %d\n", what, similarity); }
  }
}
int main(int argc, char** argv) {
  const std::int64_t n = argc > 1 ? std::atoi(argv[1]) : 600, d = argc > 2 ? std::atoi(argv[2]) : 19;
  const std::string only = argc > 3 ? argv[3] : "";
  const int num_gpus = std::getenv("EMU_GPUS") ? std::atoi(std::getenv("EMU_GPUS")) : 1;
  std::vector<Matrix> all = hard_cases(n, d);
  for (const Matrix& hard : all)
    for (const MetricEntry& metric : all_metrics()) {
      if (!only.empty() && only != metric.name) continue;
      const Matrix m = fit(metric, hard);
      Request r; r.k = 1; r.metric = &metric; r.skip = unfit(metric, m); r.devices.clear();
      for (int g = 0; g < num_gpus; ++g) r.devices.push_back(g);
      const auto points = m.source();
      Within w; w.limits = {std::numeric_limits<double>::max()};
      Rows every;
      try { cpu::find_within(r, w, points, nullptr, every, nullptr, nullptr); } catch (const RangeFailure&) { continue; }
      std::vector<double> ds; for (auto& row : every.distance_) ds.insert(ds.end(), row.begin(), row.end());
      if (ds.empty()) continue;
      std::sort(ds.begin(), ds.end());
      const auto at = [&](double share) { return ds[static_cast<std::size_t>(share * (ds.size() - 1))]; };
      const std::string name = m.name + " / " + metric.name + std::to_string(static_cast<int>(metric.sign));
      const double x = at(0.004), y = at(0.015);
      const double inf = std::numeric_limits<double>::infinity();
      if (!std::getenv("EMU_HIST")) for (const double limit : {x, std::nextafter(x, inf), std::nextafter(x, -inf), y, at(0.3)}) {
        w.limits = {limit}; w.once = limit == x; w.most_kept = limit == y ? 0 : 1 << 24;
        r.chunk_size = limit == y ? 64 : 0;
        same((name + " graph").c_str(), r, w, points, nullptr);
      }
      if (!std::getenv("EMU_HIST")) {
      w = Within(); r.chunk_size = 0;
      for (std::int64_t i = 0; i < n; ++i) w.limits.push_back(i % 97 == 5 ? -inf : i % 301 == 7 ? at(0.05) : at(0.0001 * (i % 90)));
      same((name + " limits").c_str(), r, w, points, nullptr);
      std::vector<std::int32_t> numbers; for (std::int32_t i = 0; i < 150; ++i) numbers.push_back((i * 37) % static_cast<std::int32_t>(n));
      const RowSubset queries(points, numbers);
      r.query_skip = positions_in(numbers, r.skip);
      w.limits.resize(150);
      same((name + " queries").c_str(), r, w, points, &queries);
      w.either = true; w.point_limits = {at(0.002)};
      same((name + " either").c_str(), r, w, points, &queries);
      w.point_limits.clear(); for (std::int64_t i = 0; i < n; ++i) w.point_limits.push_back(at(0.0001 * (i % 70)));
      r.query_self = numbers;
      same((name + " either, self").c_str(), r, w, points, &queries);
      r.query_self.clear(); r.query_skip.clear();
      }
      std::vector<double> some; for (int b = 0; b <= 20; ++b) some.push_back(at(b / 20.0));
      some.push_back(std::nextafter(x, inf)); some.push_back(y);
      histogram(name.c_str(), r, points, some);
      if (std::getenv("EMU_MANY")) { some.clear(); for (int b = 0; b <= 3000; ++b) some.push_back(at(0) + b * (at(1) - at(0)) / 3000); r.chunk_size = 64; histogram((name + " many").c_str(), r, points, some); r.chunk_size = 0; }
      std::printf("%s: %d runs, %d filtered, %d bad, settled %.3g of %.3g\n", name.c_str(), runs, filtered, bad, settled, seen); std::fflush(stdout);
    }
  std::printf("END %d runs, %d filtered, %d bad\n", runs, filtered, bad);
  return bad != 0;
}
