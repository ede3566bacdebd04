#include "bind_common.hpp"

#include <string>

#include "core/base/poll.hpp"

using namespace fsknn;

namespace {

PairOperator operator_of(const std::string& name) {
  if (name == "-") return PairOperator::minus;
  if (name == "+") return PairOperator::plus;
  if (name == "*") return PairOperator::times;
  return PairOperator::divided;
}

}  // namespace

namespace fsknn {
namespace bind {

std::unique_ptr<MetafeatureSource> metafeature_source(const Rcpp::List& x) {
  const std::unique_ptr<RowSource> small = matrix_source(x["values"]);
  const Rcpp::CharacterVector operators = x["ops"];
  MetafeatureOrder order;
  order.num_extra = Rcpp::as<int>(x["num_extra"]);
  order.num_rows = small->num_points() - order.num_extra;
  for (const auto& name : operators)
    order.operators[order.num_operators++] =
        operator_of(Rcpp::as<std::string>(name));
  std::vector<std::int32_t> kept;
  const bool all = Rf_isNull(x["kept"]);
  if (!all) {
    const Rcpp::IntegerVector numbers = x["kept"];
    kept.assign(numbers.begin(), numbers.end());
    for (std::int32_t& i : kept) --i;
  }
  return std::unique_ptr<MetafeatureSource>(
      new MetafeatureSource(*small, order, all ? nullptr : &kept));
}

}  // namespace bind
}  // namespace fsknn

// The rows as a matrix.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix cpp_metafeature_rows(Rcpp::List x) {
  const Listening nobody(nullptr);
  const std::unique_ptr<MetafeatureSource> source = bind::metafeature_source(x);
  const std::int64_t n = source->num_points(), d = source->num_features();
  Rcpp::NumericMatrix out(static_cast<int>(n), static_cast<int>(d));
  const std::int64_t block = 64;
  std::vector<double> rows(static_cast<std::size_t>(block * d));
  for (std::int64_t first = 0; first < n; first += block) {
    if (first % 4096 == 0) Rcpp::checkUserInterrupt();
    const std::int64_t count = std::min(block, n - first);
    source->read(first, count, rows.data(), d);
    for (std::int64_t f = 0; f < d; ++f)
      for (std::int64_t r = 0; r < count; ++r)
        out[f * n + first + r] = rows[static_cast<std::size_t>(r * d + f)];
  }
  return out;
}

// The names of metafeatures, such as "ARF1 - SLC40A1"; `names`: those of the
// rows of the small matrix.
// [[Rcpp::export(rng = false)]]
Rcpp::CharacterVector cpp_metafeature_names(Rcpp::List x,
                                            Rcpp::CharacterVector names) {
  const Listening nobody(nullptr);
  const std::unique_ptr<MetafeatureSource> source = bind::metafeature_source(x);
  static const char* const words[] = {" - ", " + ", " * ", " / "};
  std::vector<std::string> of_row;
  for (R_xlen_t i = 0; i < names.size(); ++i)
    of_row.push_back(Rf_translateCharUTF8(names[i]));
  const std::int64_t n = source->num_points();
  Rcpp::CharacterVector out(n);
  std::string name;
  for (std::int64_t p = 0; p < n; ++p) {
    if (p % 65536 == 0) Rcpp::checkUserInterrupt();
    const MadeOf made = source->made_of(p);
    if (made.second < 0) {
      SET_STRING_ELT(out, p, names[made.first]);
      continue;
    }
    name = of_row[static_cast<std::size_t>(made.first)];
    name += words[static_cast<int>(made.op)];
    name += of_row[static_cast<std::size_t>(made.second)];
    SET_STRING_ELT(
        out, p,
        Rf_mkCharLenCE(name.data(), static_cast<int>(name.size()), CE_UTF8));
  }
  return out;
}
