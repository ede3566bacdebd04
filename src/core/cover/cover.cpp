#include "core/cover/cover.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/poll.hpp"
#include "core/cover/cover_bound.hpp"
#include "core/cover/cover_search.hpp"

namespace fsknn {
namespace {

/// A new set is made from the bound's costs after this many steps. On 425 and
/// on 2,000 rows earlier sets are larger, and the steps take most of the time.
constexpr int kStepsBetweenSets = 100;
constexpr int kMostRounds = 40;
/// The local search gets the rest of the time.
constexpr double kShareOfBound = 0.5;

/// If c is the reduced cost of a feature, a set without it (c < 0) or with it
/// (c > 0) has at least bound + |c| features. Only sets smaller than `size`
/// matter.
void fix_features(const CoverProblem& problem, const CoverBound& bound,
                  int size, CoverAnswer& answer) {
  if (problem.num_pairs() == 0) return;
  for (int f = 0; f < problem.num_features(); ++f) {
    const double cost = bound.costs()[static_cast<std::size_t>(f)];
    const int least =
        static_cast<int>(std::ceil(bound.value() + std::abs(cost) - 1e-6));
    if (least < size) continue;
    (cost < 0.0 ? answer.in_smaller : answer.out_of_smaller)
        .push_back(problem.feature_id(f));
  }
}

void list_active(const CoverProblem& problem, const CoverBound& bound,
                 CoverAnswer& answer) {
  const std::vector<double>& u = bound.multipliers();
  std::vector<int> order;
  for (int p = 0; p < problem.num_pairs(); ++p)
    if (u[static_cast<std::size_t>(p)] > 1e-9) order.push_back(p);
  std::stable_sort(order.begin(), order.end(), [&](int p, int q) {
    return u[static_cast<std::size_t>(p)] > u[static_cast<std::size_t>(q)];
  });
  for (const int p : order) answer.active.push_back(problem.samples(p));
}

}  // namespace

CoverAnswer search_cover(const CoverTask& task, Progress* progress) {
  Watch watch(task.seconds, progress);
  const CoverProblem problem(task, watch);
  CoverBound bound(problem, task.num_threads);
  CoverSearch search(problem);
  const int forced = static_cast<int>(problem.forced().size());
  const int target = std::max(0, task.target - forced);
  const auto size = [&] { return static_cast<int>(search.best().size()); };
  // A set is small enough if it reaches the bound or the target. The search is
  // useless once the bound exceeds the target.
  const auto done = [&] {
    return size() <= std::max(bound.ceiling(), target) ||
           bound.ceiling() > target;
  };
  const int upper = task.target > 0 ? target + 1 : problem.num_features();

  search.construct(std::vector<double>(
                       static_cast<std::size_t>(problem.num_features()), 1.0),
                   watch);
  for (int round = 0; round < kMostRounds && !watch.over() &&
                      watch.elapsed() < kShareOfBound * task.seconds;
       ++round) {
    if (task.target > 0 ? done() : size() <= bound.ceiling()) break;
    bound.climb(std::min(upper, size()), kStepsBetweenSets, watch);
    if (bound.finished()) break;
    search.construct(bound.costs(), watch);
  }
  const auto enough = [&] { return std::max(bound.ceiling(), target); };
  if (!(task.target > 0 && bound.ceiling() > target) && size() > enough())
    search.improve(enough(), 400 + 20 * problem.num_features(), watch);

  CoverAnswer answer;
  answer.chosen = problem.forced();
  for (const int f : search.best())
    answer.chosen.push_back(problem.feature_id(f));
  std::sort(answer.chosen.begin(), answer.chosen.end());
  answer.bound = forced + std::max(0.0, bound.value());
  answer.lower_bound = forced + bound.ceiling();
  answer.in_all = problem.forced();
  fix_features(problem, bound,
               task.target > 0 ? std::min(size(), target + 1) : size(), answer);
  list_active(problem, bound, answer);
  answer.out_of_time = watch.over();
  answer.bytes = problem.bytes();
  answer.pairs_left = problem.num_pairs();
  answer.features_left = problem.num_features();
  return answer;
}

std::vector<int> count_agreements(const int* levels, int num_features,
                                  int num_samples) {
  const std::size_t n = static_cast<std::size_t>(num_features);
  const std::size_t s = static_cast<std::size_t>(num_samples);
  std::vector<int> counts(s * s, num_features);
  for (std::size_t j = 1; j < s; ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const int* a = levels + i * n;
      const int* b = levels + j * n;
      int agree = 0;
      for (std::size_t f = 0; f < n; ++f) agree += a[f] == b[f];
      counts[i + j * s] = counts[j + i * s] = agree;
      poll_after(static_cast<double>(n));
    }
  return counts;
}

}  // namespace fsknn
