// Tests which filter a search on GPUs uses, and that CONTRIBUTING.md agrees.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/contract/metrics.hpp"
#include "cuda/plan/choose_filter.hpp"

using fsknn::FilterKind;
using fsknn::FilterNumbers;
using fsknn::Request;
using fsknn::cuda::choose_filter;
using fsknn::cuda::FilterAsked;
using fsknn::cuda::FilterChoice;
using fsknn::cuda::FilteredSearch;
using fsknn::cuda::GpuFacts;
using fsknn::cuda::NumberForm;
using fsknn::cuda::RowsInForm;

namespace {

GpuFacts hopper() {
  GpuFacts gpus;
  gpus.capability = gpus.most_capability = 90;
  gpus.shared_bytes = 232448;
  gpus.multiprocessors = 132;
  return gpus;
}

struct Search {
  FilteredSearch search;
  const char* name;
};
constexpr Search kSearches[] = {
    {FilteredSearch::graph, "graph"},
    {FilteredSearch::graph_in_panels, "graph, panels"},
    {FilteredSearch::graph_by_groups, "graph, groups"},
    {FilteredSearch::queries, "queries"},
    {FilteredSearch::within, "graph, within"},
    {FilteredSearch::queries_within, "queries, within"},
    {FilteredSearch::blocks, "two blocks"},
    {FilteredSearch::pairwise, "missing values"}};

/// With many points, so that every form that the search takes may pay.
FilterAsked asked(FilteredSearch search, const char* metric,
                  const std::string& words = "auto") {
  Request request;
  request.metric = &fsknn::find_metric(metric, "signed");
  request.instruction_set = words;
  FilterAsked in(search, request);
  in.num_points = in.num_rows = 2000000;
  in.num_features = 295;
  in.k = search == FilteredSearch::within ||
                 search == FilteredSearch::queries_within
             ? 0
             : 20;
  return in;
}

/// All forms that the search may use, depending on its points.
std::vector<RowsInForm> forms_of(const FilterAsked& in) {
  FilterChoice choice = choose_filter(in, hopper());
  choice.make_room_to_centre();
  std::vector<RowsInForm> forms;
  for (RowsInForm rows = choice.rows; rows.form != NumberForm::none;
       rows = rows.otherwise())
    forms.push_back(rows);
  return forms;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string names_of(const std::vector<RowsInForm>& forms) {
  std::vector<std::string> names;
  for (const RowsInForm& rows : forms) names.push_back(name_of(rows.numbers()));
  return names.empty() ? "-" : joined(names);
}

/// Empty if common samples do not support the metric.
std::string cell(FilteredSearch search, const char* metric) {
  try {
    return names_of(forms_of(asked(search, metric)));
  } catch (const std::logic_error&) {
    return "-";
  }
}

/// The column of a metric, and of others with the same forms.
struct Column {
  std::string name;
  std::vector<std::string> cells;
};

std::vector<Column> columns() {
  std::vector<Column> all;
  for (const fsknn::MetricEntry& metric : fsknn::all_metrics()) {
    if (metric.filter == FilterKind::none) continue;
    Column column = {metric.name, {}};
    for (const Search& search : kSearches)
      column.cells.push_back(cell(search.search, metric.name));
    if (std::none_of(all.begin(), all.end(), [&](const Column& other) {
          return other.cells == column.cells;
        }))
      all.push_back(column);
  }
  return all;
}

std::string table() {
  const std::vector<Column> all = columns();
  std::string head = "| search |", rule = "\n| --- |", rows = "\n";
  for (const Column& column : all) {
    head += " " + column.name + " |";
    rule += " --- |";
  }
  for (std::size_t at = 0; at < std::size(kSearches); ++at) {
    rows += "| " + std::string(kSearches[at].name) + " |";
    for (const Column& column : all) rows += " " + column.cells[at] + " |";
    rows += "\n";
  }
  return head + rule + rows;
}

constexpr const char *kBegin = "<!-- forms by search -->\n",
                     *kEnd = "<!-- end -->";

/// The path from this folder or from that of the repository.
std::string path_of_page() {
  for (const char* const path : {"../../CONTRIBUTING.md", "CONTRIBUTING.md"})
    if (std::ifstream(path)) return path;
  return "";
}

std::string read_page() {
  std::ifstream file(path_of_page());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("CONTRIBUTING.md has the table of the filter's forms by searches") {
  std::string page = read_page();
  const std::size_t begin = page.find(kBegin);
  REQUIRE(begin != std::string::npos);
  const std::size_t from = begin + std::string(kBegin).size();
  const std::size_t end = page.find(kEnd, from);
  REQUIRE(end != std::string::npos);
  const std::string now = table();
  if (std::getenv("FSKNN_WRITE_FORMS") != nullptr) {
    page.replace(from, end - from, now);
    std::ofstream(path_of_page()) << page;
    return;
  }
  INFO("FSKNN_WRITE_FORMS=1 with this test writes it");
  CHECK(page.substr(from, end - from) == now);
}

TEST_CASE("a filter is asked for by the name of its numbers") {
  const auto first = [](FilteredSearch search, const char* metric,
                        const std::string& words) {
    return choose_filter(asked(search, metric, words), hopper());
  };
  const auto numbers = [&](FilteredSearch search, const char* metric,
                           const std::string& words) {
    return first(search, metric, words).rows.numbers();
  };
  for (const FilteredSearch search :
       {FilteredSearch::graph, FilteredSearch::queries}) {
    CHECK(numbers(search, "pearson", "auto/int8") == FilterNumbers::int8);
    CHECK(first(search, "pearson", "auto/int8").forced);
    CHECK(numbers(search, "pearson", "auto/float16") == FilterNumbers::float16);
    // No such products exist: the number of bits decides.
    CHECK(numbers(search, "pearson", "auto/int16") == FilterNumbers::float16);
    CHECK(numbers(search, "pearson", "auto/float32") == FilterNumbers::float16);
    CHECK(numbers(search, "manhattan", "auto/int8") == FilterNumbers::int8);
    CHECK(numbers(search, "manhattan", "auto/int16") == FilterNumbers::int16);
    CHECK(first(search, "manhattan", "auto/int16").forced);
    CHECK(numbers(search, "manhattan", "auto/float32") ==
          FilterNumbers::float32);
    CHECK_FALSE(first(search, "manhattan", "auto/float32").forced);
    CHECK(numbers(search, "manhattan", "auto/codes") == FilterNumbers::codes);
    CHECK(numbers(search, "chebyshev", "auto/int8") == FilterNumbers::int16);
    CHECK(numbers(search, "jaccard", "auto/bits") == FilterNumbers::bits);
  }
  // These rows are not centred.
  CHECK(first(FilteredSearch::graph, "pearson", "auto").may_centre);
  CHECK(first(FilteredSearch::graph, "pearson", "auto/16").may_centre);
  CHECK_FALSE(
      first(FilteredSearch::graph, "pearson", "auto/float16").may_centre);
  // Over common samples floats are multiplied, too.
  CHECK(numbers(FilteredSearch::pairwise, "pearson", "auto/float32") ==
        FilterNumbers::float32);
  CHECK(numbers(FilteredSearch::pairwise, "pearson", "auto/32") ==
        FilterNumbers::float16);
  CHECK_THROWS_AS(numbers(FilteredSearch::graph, "pearson", "auto/float8"),
                  std::invalid_argument);
}

TEST_CASE("numbers that are named are as wide as a number of bits") {
  for (const auto& entry : fsknn::kFilterNumbers) {
    CAPTURE(entry.name);
    CHECK(fsknn::numbers_named(entry.name) == entry.numbers);
    Request request;
    request.instruction_set = std::string("auto/") + entry.name;
    if (entry.numbers == FilterNumbers::none) {
      CHECK_THROWS_AS(asked_numbers(request), std::invalid_argument);
      continue;
    }
    CHECK(asked_numbers(request).numbers == entry.numbers);
    CHECK(asked_numbers(request).bits == entry.bits);
  }
  for (const auto& entry : fsknn::cuda::kNumberForms)
    CHECK(fsknn::bits_of(entry.numbers) == 8 * entry.bytes / entry.features);
}
