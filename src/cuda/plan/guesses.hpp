#pragma once

// Which of a row's most similar points so far has the threshold of those that
// it meets next: see GuessRule. Nothing here is part of a proof: a guess that
// was too high is found out, and costs time. Plain C++, for the host.

#include <cmath>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// The least rank that is hardly above a row's k-th nearest of all: a part
/// `met` of all points holds so many of the k nearest, or more, with a
/// probability of at most `risk`. k where no less will do. By the binomial
/// distribution, whose tail is longer than that of a sample without
/// replacement.
inline std::int64_t guessed_rank(std::int64_t k, double met, double risk) {
  if (!(met > 0.0 && met < 1.0)) return k;
  const double n = static_cast<double>(k);
  const double odds = std::log1p(-met) - std::log(met);
  double term = n * std::log(met);  // of all k
  double tail = 0.0;
  for (std::int64_t j = k; j >= 1; --j) {
    tail += std::exp(term);
    if (tail > risk) return j < k ? j + 1 : k;
    const double of = static_cast<double>(j);
    term += std::log(of / (n - of + 1.0)) + odds;
  }
  return 1;
}

/// What of an entry's error is added to what it is at least. Half of it is
/// likely, but of copies of a row, which are all as near, every other guess
/// would be too high then. Of errors that are wide less lets in more; of others
/// next to nothing, and of copies hardly a row is done again.
constexpr double guessed_error_part(bool wide) { return wide ? 0.4 : 0.2; }

/// The risk that pays. Rows that are done again take some tenths of a
/// millisecond however few they are: where that is much, hardly a search has
/// any. depth: features, times what a pair's takes to one of halves.
inline double risk_of_guesses(std::int64_t num_rows, std::int64_t num_points,
                              std::int64_t depth) {
  constexpr double much = 8.0e12, of_a_search = 0.01, of_a_row = 2.0e-4;
  const double rows = static_cast<double>(num_rows);
  const double work =
      rows * static_cast<double>(num_points) * static_cast<double>(depth);
  return work > much ? of_a_row : of_a_search / rows;
}

/// Of tests: so much that many rows are done again.
static constexpr double kHastyRisk = 0.5;

}  // namespace cuda
}  // namespace fsknn
