#include "cuda/plan/choose_filter.hpp"

#include <algorithm>
#include <stdexcept>

namespace fsknn {
namespace cuda {
namespace {

constexpr std::int64_t kMostFilteredPoints = std::int64_t{1} << 30;
// With more neighbours the lists of candidates take more memory than they are
// worth. The float64 pass, with its merging selection, computes everything.
constexpr std::int64_t kMostFilteredNeighbours = 2048;
// Below this many features of pairs floats take no longer than sampling the
// points, which is some milliseconds.
constexpr double kLeastDifferences = 3.0e10;

/// The forms that each search may use. They do not affect the answer: a form
/// that a search does not use would be slower there, has no room, or was not
/// tried.
struct SearchRule {
  FilteredSearch search;
  /// Products of bytes pass many pairs. This is acceptable where lists are
  /// re-ranked exactly before the last rounds.
  bool bytes;
  /// Centred rows are longer, so that they need room beside everything else.
  bool centred;
  /// Codes are abandoned if a point turns out not to be a small whole number:
  /// see PairFilter::suits(). This was not tried for two blocks.
  bool codes;
  /// Codes of products need rows of 0 and 1, and queries may differ.
  bool product_codes;
  /// Differences of whole numbers; else only of floats.
  bool whole_differences;
};

constexpr SearchRule kSearchRules[] = {
    {FilteredSearch::graph, true, true, true, true, true},
    {FilteredSearch::graph_in_panels, false, false, true, true, true},
    {FilteredSearch::graph_by_groups, false, false, true, true, true},
    {FilteredSearch::queries, true, true, true, false, true},
    {FilteredSearch::within, false, true, true, true, true},
    {FilteredSearch::queries_within, false, true, true, false, true},
    {FilteredSearch::blocks, false, false, false, false, true},
    {FilteredSearch::pairwise, false, false, false, false, false}};

const SearchRule& rule_of(FilteredSearch search) {
  for (const SearchRule& rule : kSearchRules)
    if (rule.search == search) return rule;
  throw_unknown("filtered search", static_cast<int>(search));
}

bool any_filter(FilterKind filter) {
  switch (filter) {
    case FilterKind::none: return false;
    case FilterKind::product:
    case FilterKind::difference:
    case FilterKind::largest:
    case FilterKind::overlap:
    case FilterKind::bits:
    case FilterKind::table: return true;
  }
  throw_unknown("filter", static_cast<int>(filter));
}

/// Whether a filter of that many points pays at all.
bool pays(const FilterAsked& in) {
  switch (in.search) {
    case FilteredSearch::graph:
    case FilteredSearch::graph_in_panels:
    case FilteredSearch::graph_by_groups:
      return in.num_points >= kLeastFilteredPoints &&
             in.num_points <= kMostFilteredPoints &&
             in.k <= kMostFilteredNeighbours;
    case FilteredSearch::queries:
      return in.num_rows >= kLeastFilteredQueries &&
             in.num_points >= kLeastFilteredPoints &&
             in.num_points <= kMostFilteredPoints &&
             in.k <= kMostFilteredNeighbours;
    case FilteredSearch::within: return in.num_points >= kLeastFilteredPoints;
    case FilteredSearch::queries_within:
      return in.num_points >= kLeastFilteredPoints &&
             in.num_rows >= kLeastFilteredQueries;
    case FilteredSearch::blocks:
      return std::min(in.num_points, in.num_rows) >= kLeastSideFiltered &&
             in.k <= kMostFilteredNeighbours;
    case FilteredSearch::pairwise:
      if (in.filter != FilterKind::product &&
          in.filter != FilterKind::difference)
        throw std::logic_error("no such pairs are made of common samples");
      return true;
  }
  throw_unknown("filtered search", static_cast<int>(in.search));
}

/// Whether bytes may pay at all, however few pairs they pass. If a row is
/// compared with too few points, no sample is needed.
bool bytes_may_pay(const FilterAsked& in, double candidate_cost) {
  return static_cast<double>(in.num_points) *
             static_cast<double>(in.num_features) >=
         candidate_cost * static_cast<double>(in.k) / 4;
}

/// The bytes of shared memory for a block of threads that rotates a row of
/// bytes in doubles.
std::int64_t bytes_to_turn(const FilterAsked& in) {
  return 8 * (RowsInForm(NumberForm::byte, in.unit, in.num_features).depth -
              2 * error_parts(in.num_features)) +
         1024;
}

/// Whether such devices can filter in this form and the search uses it. A
/// search may still find that its points do not suit.
bool serves(const NumberFormEntry& entry, const FilterAsked& in,
            const GpuFacts& gpus) {
  const SearchRule& rule = rule_of(in.search);
  if ((entry.serves & one_filter(in.filter)) == 0 ||
      in.num_features > entry.most_features ||
      gpus.capability < entry.least_capability ||
      gpus.shared_bytes < entry.shared_bytes)
    return false;
  switch (entry.form) {
    case NumberForm::code:
      return rule.codes && (in.filter != FilterKind::product || in.squares ||
                            (in.unit && rule.product_codes));
    case NumberForm::byte:
      return rule.bytes && in.unit && gpus.shared_bytes >= bytes_to_turn(in);
    case NumberForm::byte_difference:
    case NumberForm::word_difference: return rule.whole_differences;
    case NumberForm::allele: return in.alleles == 1;
    case NumberForm::allele_pair: return in.alleles == 2;
    case NumberForm::none:
    case NumberForm::half:
    case NumberForm::bit:
    case NumberForm::single: return true;
  }
  throw_unknown("number form", static_cast<int>(entry.form));
}

/// Whether a form that serves is used: if nothing is requested, when it pays;
/// else if its numbers are not narrower than those requested.
bool suits(const NumberFormEntry& entry, const FilterAsked& in,
           double candidate_cost) {
  const double work = static_cast<double>(in.num_points) *
                      static_cast<double>(in.num_rows) *
                      static_cast<double>(in.num_features);
  switch (entry.form) {
    case NumberForm::code: return !in.asked.any();
    case NumberForm::byte:
      return in.asked.any() ? in.asked.bits <= 8
                            : bytes_may_pay(in, candidate_cost);
    case NumberForm::byte_difference:
    case NumberForm::word_difference:
      return in.asked.any() ? in.asked.bits <= bits_of(entry.form)
                            : work >= kLeastDifferences;
    case NumberForm::half:
      // Only this search multiplies floats, so that it accepts a request for
      // them.
      return in.search != FilteredSearch::pairwise ||
             in.asked.numbers != FilterNumbers::float32;
    case NumberForm::none:
    case NumberForm::bit:
    case NumberForm::allele:
    case NumberForm::allele_pair:
    case NumberForm::single: return true;
  }
  throw_unknown("number form", static_cast<int>(entry.form));
}

/// The form whose numbers are requested by name, if it serves.
NumberForm named_form(const FilterAsked& in, const GpuFacts& gpus) {
  for (const NumberFormEntry& entry : kNumberForms)
    if (entry.numbers == in.asked.numbers && serves(entry, in, gpus))
      return entry.form;
  return NumberForm::none;
}

/// The first form that serves, except codes, whose replacement is chosen here
/// as well.
NumberForm first_form(const FilterAsked& in, const GpuFacts& gpus,
                      double candidate_cost) {
  for (const NumberFormEntry& entry : kNumberForms)
    if (entry.form != NumberForm::code && serves(entry, in, gpus) &&
        suits(entry, in, candidate_cost))
      return entry.form;
  // Any device computes sums over common samples in float32.
  return in.search == FilteredSearch::pairwise ? NumberForm::single
                                               : NumberForm::none;
}

}  // namespace

FilterAsked::FilterAsked(FilteredSearch kind, const Request& request)
    : search(kind),
      filter(request.metric->filter),
      unit(request.metric->is_unit_dot()),
      squares(has_squares(*request.metric)),
      alleles(static_cast<int>(request.metric->table.copies)),
      asked(asked_numbers(request)) {}

FilterChoice choose_filter(const FilterAsked& in, const GpuFacts& gpus) {
  FilterChoice choice;
  if (!any_filter(in.filter) || !pays(in)) return choice;
  choice.candidate_cost = byte_candidate_cost(gpus, in.k);
  const NumberForm named = named_form(in, gpus);
  NumberForm form = named;
  if (form == NumberForm::none || form == NumberForm::code)
    form = first_form(in, gpus, choice.candidate_cost);
  const NumberFormEntry& codes = entry_of(NumberForm::code);
  const bool by_codes =
      named == NumberForm::code ||
      (serves(codes, in, gpus) && suits(codes, in, choice.candidate_cost));
  choice.rows = by_codes ? RowsInForm::codes(in.num_features, form, in.unit)
                         : RowsInForm(form, in.unit, in.num_features);
  choice.forced = in.asked.any() && (form == NumberForm::byte ||
                                     form == NumberForm::byte_difference ||
                                     form == NumberForm::word_difference);
  // A request for halves by name means rows that are not centred.
  choice.may_centre =
      rule_of(in.search).centred && in.asked.numbers != FilterNumbers::float16;
  return choice;
}

}  // namespace cuda
}  // namespace fsknn
