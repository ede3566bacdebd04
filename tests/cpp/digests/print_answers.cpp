// Writes the bytes of answers to files, one for each case. Their digests are
// the table tests/cpp/digests.sha256: answers are the same on every machine and
// in every version.
//
//   print_answers FOLDER [FORM.DATA]...
//
// creates in FOLDER a folder for each way to compute the answers: `definition`,
// one for each instruction set of this processor, and `pieces`, the fastest set
// with other threads and chunks. Their files must be equal. If cases are named,
// it writes only these, and only with the instruction sets, but with each also
// in 8 bits. This suits an emulator, which is slow.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/contract/covariates.hpp"
#include "core/files/row_file.hpp"
#include "core/graph/cut.hpp"
#include "core/graph/spanning.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/metafeatures.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/outside.hpp"
#include "matrices.hpp"

using namespace fsknn;

namespace {

/// How answers are computed.
struct Way {
  std::string name;
  bool definition = false;
  std::string instruction_set = "auto";
  int num_threads = 1;
  std::int64_t chunk_size = 0;
};

std::vector<Way> all_ways(bool of_sets_alone) {
  std::vector<Way> ways;
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    Way way;
    way.name = way.instruction_set = kernels->name;
    ways.push_back(way);
    if (!of_sets_alone) continue;
    way.name += "-8";
    way.instruction_set += "/8";
    ways.push_back(way);
  }
  if (of_sets_alone) return ways;
  Way definition;
  definition.name = "definition";
  definition.definition = true;
  ways.push_back(definition);
  Way pieces;
  pieces.name = "pieces";
  pieces.num_threads = 2;
  pieces.chunk_size = 48;
  ways.push_back(pieces);
  return ways;
}

/// The bytes of a case, little-endian as on all machines that run this.
class Bytes {
 public:
  template <class T>
  void add(const T* values, std::size_t count) {
    const char* const from = reinterpret_cast<const char*>(values);
    bytes_.insert(bytes_.end(), from, from + count * sizeof(T));
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size());
  }
  void add(const char* words) { bytes_.append(words); }
  void write(const std::string& path) const {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    const bool written =
        file != nullptr &&
        std::fwrite(bytes_.data(), 1, bytes_.size(), file) == bytes_.size();
    if (file == nullptr || std::fclose(file) != 0 || !written)
      throw std::runtime_error("cannot write " + path);
  }

 private:
  std::string bytes_;
};

bool is_binary(const MetricEntry& metric) {
  const std::string name = metric.name;
  return name == "jaccard" || name == "sorensen";
}
bool takes_weights(const MetricEntry& metric) {
  return metric.row_form == RowForm::centred_unit ||
         metric.row_form == RowForm::ranked;
}

/// Over common features the metric is a mean of differences.
bool is_difference(const MetricEntry& metric) {
  const std::string name = metric.name;
  return name == "euclidean" || name == "manhattan";
}

/// Changes the values to those that the metric accepts.
Matrix fit(const MetricEntry& metric, Matrix m) {
  if (metric.is_table())
    for (double& x : m.values)
      x = x > 0.0 ? (x > 1.0 ? metric.table.copies : 1.0) : 0.0;
  else if (is_binary(metric))
    for (double& x : m.values) x = x > 0.0 ? 1.0 : 0.0;
  else if (metric.least_overlap != nullptr)
    for (double& x : m.values) x = std::fabs(x);
  return m;
}

/// The rows that the metric rejects, and `more`.
std::vector<std::int64_t> left_out(const MetricEntry& metric,
                                   const RowSource& source,
                                   std::vector<std::int64_t> more = {}) {
  const MatrixFacts facts = scan(source, 1);
  std::vector<std::int64_t> rows;
  if (metric.row_form == RowForm::unit || metric.least_overlap != nullptr)
    rows = facts.zero;
  else if (metric.is_unit_dot())
    rows = facts.constant;
  rows.insert(rows.end(), more.begin(), more.end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

struct Lists {
  Lists(const Request& r, std::int64_t rows, bool as_edges)
      : k(r.k),
        index(static_cast<std::size_t>(rows * k), -7),
        distance(index.size(), -7.0),
        correlation(r.metric->is_unit_dot() ? index.size() : 0, -7.0) {
    view.rows = rows;
    view.index = index.data();
    view.distance = distance.data();
    view.correlation = correlation.empty() ? nullptr : correlation.data();
    view.missing_index = -1;
    view.missing_value = -1.0;
    if (as_edges) {
      view.edges_a_row = k;
      view.left_out = &r.skip;
    }
  }
  void print(Bytes& to) const {
    to.add(index);
    to.add(distance);
    to.add(correlation);
  }
  bool operator==(const Lists& other) const {
    return index == other.index && distance == other.distance &&
           correlation == other.correlation;
  }
  std::int64_t k;
  std::vector<std::int32_t> index;
  std::vector<double> distance, correlation;
  Neighbours view;
};

class Rows final : public WithinRows {
 public:
  explicit Rows(bool with_correlation) : with_correlation_(with_correlation) {}
  void allocate(const std::vector<std::int32_t>& counts) override {
    counts_ = counts;
    start_.clear();
    std::size_t size = 0;
    for (const std::int32_t count : counts) {
      start_.push_back(size);
      size += static_cast<std::size_t>(count);
    }
    index_.assign(size, -7);
    distance_.assign(size, -7.0);
    correlation_.assign(with_correlation_ ? size : 0, -7.0);
  }
  Row row(std::int64_t row) override {
    return {at(index_, row), at(distance_, row),
            with_correlation_ ? at(correlation_, row) : nullptr};
  }
  void print(Bytes& to) const {
    to.add(counts_);
    to.add(index_);
    to.add(distance_);
    to.add(correlation_);
  }

 private:
  template <class T>
  T* at(std::vector<T>& of, std::int64_t row) {
    return of.data() + start_[static_cast<std::size_t>(row)];
  }
  bool with_correlation_;
  std::vector<std::int32_t> counts_;
  std::vector<std::size_t> start_;
  std::vector<std::int32_t> index_;
  std::vector<double> distance_, correlation_;
};

/// Lists from which no edge leads to other components.
struct NothingOutside final : Outside {
  void lower(const std::vector<std::int32_t>&, const std::vector<char>&,
             std::vector<TreeEdge>&) override {}
};

NearLists near_lists(const Lists& found,
                     const std::vector<std::int64_t>& skip) {
  NearLists lists;
  const std::int64_t n = found.view.rows, k = found.k;
  lists.index = Buffer<std::int32_t>(n * k);
  lists.distance = Buffer<double>(n * k);
  lists.start.push_back(0);
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::binary_search(skip.begin(), skip.end(), i))
      for (std::int64_t rank = 0; rank < k; ++rank, ++to) {
        const std::size_t from = static_cast<std::size_t>(rank * n + i);
        lists.index[to] = found.index[from] - 1;
        lists.distance[to] = found.distance[from];
      }
    lists.start.push_back(to);
  }
  return lists;
}

/// Prints all cases in one way.
class Printer {
 public:
  Printer(const Way& way, const std::string& folder,
          const std::vector<std::string>& cases)
      : way_(way),
        cases_(cases),
        folder_(folder + "/" + way.name),
        kernel_(cpu::choose_kernels(way.instruction_set).prepare_row) {
    std::filesystem::create_directory(folder_);
  }

  void print_all() {
    const std::vector<Matrix> matrices = all_matrices();
    for (const MetricEntry& metric : all_metrics()) {
      metric_ = &metric;
      for (const Matrix& m : matrices) print_knn(m);
      for (const std::size_t which : {0, 1, 2}) {
        const Matrix& m = matrices[which];
        print_edges(m);
        print_queries(m);
        print_own(m);
        print_within(m);
        print_tree(m);
        print_file(m);
        if (takes_weights(metric)) print_weights(m);
        if (takes_weights(metric)) print_adjusted(m);
        if (!is_binary(metric) && !metric.is_table()) print_filled(m);
        if (takes_weights(metric) || is_difference(metric)) print_gaps(m);
      }
      for (const std::size_t which : {3, 4, 5}) {
        print_within(matrices[which]);
        print_tree(matrices[which]);
      }
      print_metafeatures();
    }
  }

 private:
  Request request(std::int64_t k) const {
    Request r;
    r.k = k;
    r.metric = metric_;
    r.num_threads = way_.num_threads;
    r.chunk_size = way_.chunk_size;
    r.instruction_set = way_.instruction_set;
    return r;
  }

  /// A distance beyond the range of a double counts as an answer.
  void print(const std::string& form, const std::string& data,
             const std::function<void(Bytes&)>& fill) const {
    if (!cases_.empty() && std::find(cases_.begin(), cases_.end(),
                                     form + "." + data) == cases_.end())
      return;
    Bytes bytes;
    try {
      fill(bytes);
    } catch (const RangeFailure&) {
      bytes.add("out of range");
    }
    bytes.write(folder_ + "/" + metric_->name + "-" + sign_name(metric_->sign) +
                "." + form + "." + data);
  }

  Lists find(const Request& r, const RowSource& points,
             const RowSource* queries, bool as_edges = false) const {
    const std::int64_t rows =
        queries != nullptr ? queries->num_points() : points.num_points();
    Lists found(r, rows, as_edges);
    if (way_.definition)
      brute_force(r, points, queries, found.view);
    else
      cpu::find_neighbours(r, points, queries, found.view, nullptr, nullptr);
    return found;
  }

  void find_within(const Request& r, const Within& within,
                   const RowSource& points, const RowSource* queries,
                   Bytes& to) const {
    Rows found(metric_->is_unit_dot());
    if (way_.definition)
      brute_within(r, within, points, queries, found);
    else
      cpu::find_within(r, within, points, queries, found, nullptr, nullptr);
    found.print(to);
  }

  /// A distance that some pairs have, to test equality.
  double some_distance(const Request& asked, const RowSource& points,
                       double share) const {
    Request r = asked;
    r.k = 20;
    std::vector<double> distances = find(r, points, nullptr).distance;
    distances.erase(std::remove(distances.begin(), distances.end(), -1.0),
                    distances.end());
    std::sort(distances.begin(), distances.end());
    return distances[static_cast<std::size_t>(
        share * static_cast<double>(distances.size() - 1))];
  }

  void print_knn(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    print("knn", m.name, [&](Bytes& to) {
      for (const std::int64_t k : {1, 7, 30}) {
        Request r = request(k);
        r.skip = left_out(*metric_, m.source());
        find(r, m.source(), nullptr).print(to);
      }
    });
  }

  void print_edges(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    print("edges", m.name, [&](Bytes& to) {
      Request r = request(9);
      r.skip = left_out(*metric_, m.source(), {0, 77, m.n - 1});
      find(r, m.source(), nullptr, true).print(to);
    });
  }

  /// Few queries and many; some of them, and some points, are skipped.
  void print_queries(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    print("queries", m.name, [&](Bytes& to) {
      for (const std::int64_t rows : {5, 83}) {
        const Matrix q =
            fit(*metric_, hard.name == "ties" ? small_whole(rows, m.d, 21)
                                              : generic(rows, m.d, 22));
        Request r = request(12);
        r.skip = left_out(*metric_, m.source(), {3, 77});
        r.query_skip = left_out(*metric_, q.source(), {1, rows - 1});
        const auto queries = q.source();
        find(r, m.source(), &queries).print(to);
      }
    });
  }

  /// Queries that are points themselves.
  void print_own(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    const auto points = m.source();
    print("own", m.name, [&](Bytes& to) {
      std::vector<std::int32_t> few = {229, 3, 3, 0}, many;
      for (std::int32_t i = 0; i < 230; i += 1 + i % 3) many.push_back(229 - i);
      for (const std::vector<std::int32_t>& numbers : {few, many}) {
        const RowSubset queries(points, numbers);
        Request r = request(8);
        r.skip = left_out(*metric_, points);
        r.query_self = numbers;
        r.query_skip = positions_in(numbers, r.skip);
        find(r, points, &queries).print(to);
      }
    });
  }

  void print_within(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    const auto points = m.source();
    print("within", m.name, [&](Bytes& to) {
      Request r = request(1);
      r.skip = left_out(*metric_, points, {0, 50});
      for (const double share : {0.1, 0.7}) {
        Within within;
        within.limits = {some_distance(r, points, share)};
        find_within(r, within, points, nullptr, to);
        within.once = true;
        find_within(r, within, points, nullptr, to);
      }
    });
    print("within-queries", m.name, [&](Bytes& to) {
      std::vector<std::int32_t> numbers;
      for (std::int32_t i = 0; i < 61; ++i) numbers.push_back(2 * i);
      const RowSubset queries(points, numbers);
      Request r = request(1);
      r.skip = left_out(*metric_, points, {0, 50});
      r.query_skip = positions_in(numbers, r.skip);
      const double far = some_distance(r, points, 0.7);
      Within within;
      // First each row has its own limit; then the queries are points.
      for (int i = 0; i < 61; ++i)
        within.limits.push_back(std::ldexp(far * static_cast<double>(i), -5));
      find_within(r, within, points, &queries, to);
      r.query_self = numbers;
      find_within(r, within, points, &queries, to);
    });
  }

  /// The definition uses the lists of all other points.
  void print_tree(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    const auto points = m.source();
    print("tree", m.name, [&](Bytes& to) {
      Request r = request(5);
      r.skip = left_out(*metric_, points, {7});
      if (way_.definition)
        r.k = m.n - static_cast<std::int64_t>(r.skip.size()) - 1;
      const Lists found = find(r, points, nullptr);
      const NearLists lists = near_lists(found, r.skip);
      if (way_.definition) {
        NothingOutside outside;
        const std::vector<TreeEdge> tree = spanning_tree(lists, outside);
        print_edges_of(tree, cut_forest(tree, lists, 99, nullptr, 1, nullptr),
                       to);
      } else {
        const cpu::ExactPoints exact(r, points, nullptr);
        cpu::OutsideSearch outside(exact, r, nullptr);
        const std::vector<TreeEdge> tree = spanning_tree(lists, outside);
        print_edges_of(
            tree, cut_forest(tree, lists, 99, &exact, r.num_threads, nullptr),
            to);
      }
    });
  }

  void print_edges_of(const std::vector<TreeEdge>& tree, const Cut& cut,
                      Bytes& to) const {
    for (const TreeEdge& e : tree) {
      to.add(&e.low, 1);
      to.add(&e.high, 1);
      to.add(&e.distance, 1);
    }
    to.add(cut.kept);
    to.add(cut.cluster);
  }

  /// Rows from a file, read in blocks.
  void print_file(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    const auto points = m.source();
    print("file", m.name, [&](Bytes& to) {
      Request r = request(11);
      r.skip = left_out(*metric_, points, {2});
      std::vector<std::int32_t> numbers;
      for (std::int32_t i = 0; i < 90; ++i) numbers.push_back(250 - i);
      const RowSubset some(points, numbers);
      Request of_queries = r;
      of_queries.query_self = numbers;
      of_queries.query_skip = positions_in(numbers, r.skip);
      if (way_.definition) {
        find(r, points, nullptr).print(to);
        find(of_queries, points, &some).print(to);
        return;
      }
      r.max_memory = of_queries.max_memory = 1 << 17;
      const std::unique_ptr<RowFile> file = file_of(r, points);
      const std::unique_ptr<RowFile> queries = file_of(r, some);
      find(r, *file, nullptr).print(to);
      find(of_queries, *file, queries.get()).print(to);
    });
  }

  std::unique_ptr<RowFile> file_of(const Request& r,
                                   const RowSource& source) const {
    RowFileForm form;
    form.folder = folder_;
    form.num_points = source.num_points();
    form.num_features = form.strip_features = source.num_features();
    std::unique_ptr<RowFile> file(new RowFile(form, r, kernel_));
    file->add(0, 0, source);
    file->finish(nullptr);
    return file;
  }

  void print_weights(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    print("weights", m.name, [&](Bytes& to) {
      Draw draw(31);
      std::vector<double> weights;
      for (std::int64_t f = 0; f < m.d; ++f)
        weights.push_back(
            std::ldexp(static_cast<double>(1 + draw.below(99)), -5));
      Request r = request(10);
      r.weights = std::make_shared<SampleWeights>(weights);
      r.skip = left_out(*metric_, m.source());
      find(r, m.source(), nullptr).print(to);
    });
  }

  /// Rows adjusted for five covariates, one of them redundant.
  void print_adjusted(const Matrix& hard) const {
    const Matrix m = fit(*metric_, hard);
    const auto points = m.source();
    Draw draw(61);
    std::vector<double> columns, weights;
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t f = 0; f < m.d; ++f) {
        const double x = i == 0 ? static_cast<double>(f % 3) : draw.bell();
        const std::size_t first = static_cast<std::size_t>(f);
        columns.push_back(i == 3 ? 2.0 * columns[first] - 1.0 : x);
      }
    for (std::int64_t f = 0; f < m.d; ++f)
      weights.push_back(
          std::ldexp(static_cast<double>(1 + draw.below(99)), -5));
    print("adjusted", m.name, [&](Bytes& to) {
      for (const bool weighted : {false, true}) {
        Request r = request(10);
        if (weighted) r.weights = std::make_shared<SampleWeights>(weights);
        r.covariates = std::make_shared<SampleCovariates>(columns.data(), m.d,
                                                          5, r.weights.get());
        Preparing preparing;
        preparing.recipe = recipe_of(r, 0);
        preparing.kernel = kernel_;
        r.skip = left_out(*metric_, points,
                          scan(points, 1, nullptr, {}, preparing).explained);
        to.add(r.skip);
        find(r, points, nullptr).print(to);
        if (way_.definition) continue;
        r.max_memory = 1 << 17;
        const std::unique_ptr<RowFile> file = file_of(r, points);
        if (!(find(r, *file, nullptr) == find(r, points, nullptr)))
          throw std::runtime_error("a file is adjusted otherwise");
      }
    });
  }

  /// Missing values become the mean of their row.
  void print_filled(const Matrix& hard) const {
    const Matrix m = with_gaps(fit(*metric_, hard), 41);
    const MeanFilled filled(std::make_unique<MatrixSource<double>>(m.source()));
    print("mean", m.name, [&](Bytes& to) {
      Request r = request(10);
      r.skip = left_out(*metric_, filled, {20});
      find(r, filled, nullptr).print(to);
    });
  }

  /// Pairs over common features.
  void print_gaps(const Matrix& hard) const {
    if (metric_->row_form == RowForm::biweight_unit) return;
    const Matrix m = with_gaps(hard, 42);
    const auto points = m.source();
    Request r = request(13);
    r.na_pairwise = true;
    r.skip = {4, 50};
    const std::vector<std::int32_t> numbers = {10, 20, 30, 31, 4, 60, 200};
    const RowSubset queries(points, numbers);
    print("pairwise", m.name, [&](Bytes& to) {
      for (const std::int64_t min_pairs : {2, 6}) {
        r.min_pairs = min_pairs;
        find(r, points, nullptr).print(to);
        Request own = r;
        own.query_self = numbers;
        own.query_skip = positions_in(numbers, r.skip);
        find(own, points, &queries).print(to);
      }
    });
    print("pairwise-within", m.name, [&](Bytes& to) {
      Within within;
      within.limits = {some_distance(r, points, 0.8)};
      find_within(r, within, points, nullptr, to);
      within.once = true;
      find_within(r, within, points, nullptr, to);
    });
  }

  void print_metafeatures() const {
    Matrix m = generic(17, 21, 51);
    for (double& x : m.values)
      if (x == 0.0) x = 1.0;
    m = fit(*metric_, m);
    MetafeatureOrder order;
    order.num_rows = 16;
    order.num_extra = 1;
    // Binary data allow only products; nonnegative data allow no difference.
    if (!is_binary(*metric_)) {
      if (metric_->least_overlap == nullptr)
        order.operators[order.num_operators++] = PairOperator::minus;
      order.operators[order.num_operators++] = PairOperator::plus;
      order.operators[order.num_operators++] = PairOperator::divided;
    }
    order.operators[order.num_operators++] = PairOperator::times;
    const MetafeatureSource points(m.source(), order);
    print("metafeatures", "generic", [&](Bytes& to) {
      Request r = request(15);
      r.skip = left_out(*metric_, points);
      find(r, points, nullptr).print(to);
    });
  }

  const Way way_;
  const std::vector<std::string>& cases_;  ///< empty: all cases
  const std::string folder_;
  const RowKernel kernel_;
  const MetricEntry* metric_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "print_answers FOLDER [FORM.DATA]...\n");
    return 2;
  }
  try {
    const std::vector<std::string> cases(words + 2, words + count);
    std::filesystem::create_directory(words[1]);
    for (const Way& way : all_ways(!cases.empty()))
      Printer(way, words[1], cases).print_all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "print_answers: %s\n", e.what());
    return 1;
  }
  return 0;
}
