#include "core/rows/filled.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/scaling.hpp"

namespace fsknn {

double mean_of_known(const double* x, std::int64_t d) {
  double least = 0.0, most = 0.0;
  std::int64_t known = 0;
  for (std::int64_t f = 0; f < d; ++f) {
    if (!has_value(x[f])) continue;
    least = known == 0 || x[f] < least ? x[f] : least;
    most = known == 0 || x[f] > most ? x[f] : most;
    ++known;
  }
  if (known == 0) return no_correlation();
  const double largest = std::max(std::fabs(least), std::fabs(most));
  // Rows with an infinite value are an error; 0 adds no further infinite value.
  if (!std::isfinite(largest)) return 0.0;
  if (!(largest > 0.0)) return least;
  const int e = exponent_of(largest);
  const PowerOfTwo down = power_of_two(-e), up = power_of_two(e);
  double lanes[kLanes] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (std::int64_t f = 0; f < d; ++f)
    if (has_value(x[f]))
      lanes[f % kLanes] =
          std::fma(x[f] * down.first, down.second, lanes[f % kLanes]);
  const double mean =
      ((join_sum(lanes) / static_cast<double>(known)) * up.first) * up.second;
  return mean < least ? least : (mean > most ? most : mean);
}

std::int64_t fill_with_mean(double* x, std::int64_t d) {
  const auto is_missing = [](double value) { return !has_value(value); };
  const std::int64_t missing = std::count_if(x, x + d, is_missing);
  if (missing == 0) return 0;
  const double mean = missing == d ? 0.0 : mean_of_known(x, d);
  std::replace_if(x, x + d, is_missing, mean);
  return missing;
}

void MeanFilled::read(std::int64_t first, std::int64_t count, double* out,
                      std::int64_t stride) const {
  from_->read(first, count, out, stride);
  const std::int64_t d = num_features();
  for (std::int64_t r = 0; r < count; ++r) {
    double* x = out + r * stride;
    const auto missing = [](double value) { return !has_value(value); };
    if (!std::any_of(x, x + d, missing)) continue;
    std::replace_if(x, x + d, missing, mean_of_known(x, d));
  }
}

namespace {

/// As fill_with_mean(), with the first value of the row or with zeros.
std::int64_t fill_with(FilledBy by, double* x, std::int64_t d) {
  std::int64_t missing = 0;
  for (std::int64_t f = 0; f < d; ++f) missing += !has_value(x[f]);
  if (missing == 0) return 0;
  const double* known = std::find_if(x, x + d, has_value);
  // As in mean_of_known(): adds no infinite values.
  const double value =
      by == FilledBy::zero || known == x + d || !std::isfinite(*known) ? 0.0
                                                                       : *known;
  for (std::int64_t f = 0; f < d; ++f) x[f] = has_value(x[f]) ? x[f] : value;
  return missing;
}

/// Counts and fills the missing values of the rows that it reads.
class Counted final : public RowSource {
 public:
  struct Found {
    std::int64_t missing = 0;
    bool empty = false;
  };
  Counted(const RowSource& from, FilledBy by, std::vector<Found>& found)
      : from_(from), by_(by), found_(found) {}
  std::int64_t num_points() const override { return from_.num_points(); }
  std::int64_t num_features() const override { return from_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    from_.read(first, count, out, stride);
    const std::int64_t d = num_features();
    for (std::int64_t r = 0; r < count; ++r) {
      double* x = out + r * stride;
      const std::int64_t missing =
          by_ == FilledBy::mean ? fill_with_mean(x, d) : fill_with(by_, x, d);
      if (missing > 0)
        found_[static_cast<std::size_t>(first + r)] = {missing, missing == d};
    }
  }

 private:
  const RowSource& from_;
  const FilledBy by_;
  std::vector<Found>& found_;
};

}  // namespace

void add_facts(MissingFacts& to, const MissingFacts& from) {
  to.missing += from.missing;
  to.empty.insert(to.empty.end(), from.empty.begin(), from.empty.end());
  add_facts(to.known, from.known);
}

MissingFacts scan_missing(const RowSource& source, int num_threads,
                          Progress* progress, const Preparing& preparing,
                          FilledBy by, const EntriesCounted& counted) {
  std::vector<Counted::Found> found(
      static_cast<std::size_t>(source.num_points()));
  MissingFacts facts;
  facts.known = scan(Counted(source, by, found), num_threads, progress, counted,
                     preparing);
  for (std::size_t i = 0; i < found.size(); ++i) {
    facts.missing += found[i].missing;
    if (found[i].empty) facts.empty.push_back(static_cast<std::int64_t>(i));
  }
  const auto is_empty = [&](std::int64_t i) {
    return found[static_cast<std::size_t>(i)].empty;
  };
  for (std::vector<std::int64_t>* rows :
       {&facts.known.constant, &facts.known.zero})
    rows->erase(std::remove_if(rows->begin(), rows->end(), is_empty),
                rows->end());
  return facts;
}

}  // namespace fsknn
