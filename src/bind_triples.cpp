// Triples of points by three-way Proportional Similarity, on the CPU.

#include <cstdio>

#include "bind_common.hpp"
#include "cpu/triples.hpp"

using namespace fsknn;

namespace {

/// What is asked for, with the limits' number of threads and memory.
Request request_of(const Rcpp::List& list, const Rcpp::List& limits) {
  Request request = bind::request_from(list);
  request.num_threads = Rcpp::as<int>(limits["num_threads"]);
  request.max_memory = Rcpp::as<double>(limits["max_memory"]);
  return request;
}

std::unique_ptr<Progress> progress_of(const Rcpp::List& limits) {
  return bind::r_progress(Rcpp::as<bool>(limits["progress"]), "Triples");
}

TriplePath path_of(const std::string& name) {
  if (name == "auto") return TriplePath::automatic;
  if (name == "pairs") return TriplePath::pairs;
  if (name == "all") return TriplePath::all;
  throw std::invalid_argument("no path \"" + name + "\"");
}

Rcpp::List list_of(const TripleStats& stats) {
  return Rcpp::List::create(
      Rcpp::_["path"] = stats.path == TriplePath::pairs ? "pairs" : "all",
      Rcpp::_["triples"] = stats.triples,
      Rcpp::_["candidates"] = stats.candidates,
      Rcpp::_["settled"] = stats.settled,
      Rcpp::_["comparisons"] = stats.comparisons,
      Rcpp::_["seconds"] = stats.seconds);
}

std::string hexadecimal(std::uint64_t checksum) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(checksum));
  return text;
}

Rcpp::List failure_of(const TooManyTriples& e) {
  return Rcpp::List::create(
      Rcpp::_["failure"] = "too_many_triples", Rcpp::_["message"] = e.what(),
      Rcpp::_["triples"] = e.triples, Rcpp::_["estimated"] = e.estimated,
      Rcpp::_["most"] = e.most, Rcpp::_["fits"] = e.fits);
}

/// A column of what each of the answer's has.
template <class Vector, class All, class Get>
Vector column_of(const All& all, SEXPTYPE type, const Get& get) {
  Vector column(bind::new_vector(type, static_cast<std::int64_t>(all.size())));
  for (std::size_t i = 0; i < all.size(); ++i)
    column[static_cast<R_xlen_t>(i)] = get(all[i]);
  return column;
}
template <class Get>
Rcpp::IntegerVector numbers(const std::vector<Triple>& all, const Get& get) {
  return column_of<Rcpp::IntegerVector>(
      all, INTSXP, [&](const Triple& t) { return get(t) + 1; });
}
template <class Get>
Rcpp::NumericVector doubles(const std::vector<TriplePairs>& all,
                            const Get& get) {
  return column_of<Rcpp::NumericVector>(all, REALSXP, get);
}

}  // namespace

// Triples of rows that are at least that similar. request: as searches have it.
// contains: rows from 1 of which a triple must have one; none: all triples.
// stage: from 1, of `stages`. path: "auto", "pairs" or "all". limits:
// num_threads, max_memory, progress. More triples than max_triples are a
// failure "too_many_triples" with triples, estimated, most, fits (a threshold;
// Inf: none).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_threshold_triples(SEXP values, Rcpp::List request,
                                 double min_similarity,
                                 Rcpp::IntegerVector contains, double stage,
                                 double stages, std::string path,
                                 double max_triples, Rcpp::List limits) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = progress_of(limits);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    TripleQuestion question;
    question.least = min_similarity;
    question.contains = bind::numbers_from(contains);
    question.stage = static_cast<std::int64_t>(stage) - 1;
    question.stages = static_cast<std::int64_t>(stages);
    question.path = path_of(path);
    question.most = max_triples;
    cpu::TriplesFound found;
    try {
      found = cpu::find_triples(request_of(request, limits), question, *source,
                                progress.get());
    } catch (const TooManyTriples& e) {
      return failure_of(e);
    }
    const std::vector<Triple>& all = found.triples;
    const std::vector<TriplePairs>& pairs = found.pairs;
    return Rcpp::List::create(
        Rcpp::_["from"] = numbers(all, [](const Triple& t) { return t.from; }),
        Rcpp::_["to"] = numbers(all, [](const Triple& t) { return t.to; }),
        Rcpp::_["third"] =
            numbers(all, [](const Triple& t) { return t.third; }),
        Rcpp::_["similarity"] = column_of<Rcpp::NumericVector>(
            all, REALSXP, [](const Triple& t) { return t.similarity; }),
        Rcpp::_["pair_from_to"] =
            doubles(pairs, [](const TriplePairs& p) { return p.from_to; }),
        Rcpp::_["pair_from_third"] =
            doubles(pairs, [](const TriplePairs& p) { return p.from_third; }),
        Rcpp::_["pair_to_third"] =
            doubles(pairs, [](const TriplePairs& p) { return p.to_third; }),
        Rcpp::_["at_least"] =
            doubles(pairs, [](const TriplePairs& p) { return p.at_least; }),
        Rcpp::_["at_most"] =
            doubles(pairs, [](const TriplePairs& p) { return p.at_most; }),
        Rcpp::_["stats"] = list_of(found.stats),
        Rcpp::_["checksum"] = hexadecimal(found.checksum));
  });
}

// The k triples of each row (of `contains`, in its order; none: of all).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_nearest_triples(SEXP values, Rcpp::List request, int k,
                               Rcpp::IntegerVector contains, std::string path,
                               Rcpp::List limits) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = progress_of(limits);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    Request asked = request_of(request, limits);
    asked.k = k;
    const cpu::NearestTriples found =
        cpu::nearest_triples(asked, bind::numbers_from(contains), path_of(path),
                             *source, progress.get());
    const std::int64_t rows = static_cast<std::int64_t>(found.lists.size());
    Rcpp::IntegerVector second(bind::new_vector(INTSXP, rows * k));
    Rcpp::IntegerVector third(bind::new_vector(INTSXP, rows * k));
    Rcpp::NumericVector similarity(bind::new_vector(REALSXP, rows * k));
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto& list = found.lists[static_cast<std::size_t>(i)];
      for (std::int64_t r = 0; r < k; ++r) {
        const R_xlen_t at = static_cast<R_xlen_t>(r * rows + i);
        const std::size_t rank = static_cast<std::size_t>(r);
        const bool known = rank < list.size();
        second[at] = known ? list[rank].second + 1 : NA_INTEGER;
        third[at] = known ? list[rank].third + 1 : NA_INTEGER;
        similarity[at] = known ? list[rank].similarity : NA_REAL;
      }
    }
    const Rcpp::IntegerVector dim =
        Rcpp::IntegerVector::create(static_cast<int>(rows), k);
    second.attr("dim") = dim;
    third.attr("dim") = dim;
    similarity.attr("dim") = dim;
    return Rcpp::List::create(
        Rcpp::_["second"] = second, Rcpp::_["third"] = third,
        Rcpp::_["similarity"] = similarity,
        Rcpp::_["stats"] = list_of(found.stats),
        Rcpp::_["checksum"] = hexadecimal(found.checksum));
  });
}

// breaks: ascending. counts: of [breaks[i], breaks[i + 1]), the last bin with
// its upper end.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_triple_histogram(SEXP values, Rcpp::List request,
                                std::vector<double> breaks, double stage,
                                double stages, Rcpp::List limits) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = progress_of(limits);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    const cpu::TripleCounts found = cpu::count_triples(
        request_of(request, limits), breaks,
        static_cast<std::int64_t>(stage) - 1, static_cast<std::int64_t>(stages),
        *source, progress.get());
    return Rcpp::List::create(Rcpp::_["counts"] = found.counts,
                              Rcpp::_["below"] = found.below,
                              Rcpp::_["above"] = found.above,
                              Rcpp::_["checksum"] = hexadecimal(found.checksum),
                              Rcpp::_["stats"] = list_of(found.stats));
  });
}
