// Triples of points.

#include <unistd.h>

#include <memory>

#include "bind_common.hpp"
#include "core/files/digest.hpp"
#include "cpu/search/similarity_bytes.hpp"
#include "cpu/triples/triples.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace {

/// A prepared search, for which R has a handle. It has no finalizer in C,
/// because R might call it after the library is unloaded.
struct Opened {
  std::unique_ptr<cpu::TripleSearch> search;
  /// The owner: after a fork the search belongs to the parent.
  long process = static_cast<long>(getpid());
};
using Handle = Rcpp::XPtr<Opened>;

/// stage: a stage from 1, and the number of stages.
void take_stage(const Rcpp::NumericVector& stage, TripleQuestion& question) {
  question.stage = static_cast<std::int64_t>(stage[0]) - 1;
  question.stages = static_cast<std::int64_t>(stage[1]);
}

/// The scanner of the backend; empty for the CPU.
MakeTripleScanner scanner_of(const Rcpp::List& request) {
  if (Rcpp::as<std::string>(request["backend"]) != "cuda") return {};
  return &cuda::triple_scanner;
}

TriplePath path_of(const std::string& name) {
  if (name == "auto") return TriplePath::automatic;
  if (name == "pairs") return TriplePath::pairs;
  if (name == "all") return TriplePath::all;
  throw std::invalid_argument("no path \"" + name + "\"");
}

Rcpp::List list_of(const TripleStats& stats) {
  return Rcpp::List::create(
      Rcpp::_["by_pairs"] = stats.path == TriplePath::pairs,
      Rcpp::_["triples"] = stats.triples,
      Rcpp::_["candidates"] = stats.candidates,
      Rcpp::_["reranked"] = stats.reranked,
      Rcpp::_["comparisons"] = stats.comparisons,
      Rcpp::_["seconds"] = stats.seconds, Rcpp::_["sampled"] = stats.sampled,
      Rcpp::_["sample_pairs"] = stats.sample_pairs);
}

Rcpp::List failure_of(const TooManyTriples& e) {
  return Rcpp::List::create(
      Rcpp::_["failure"] = "too_many_triples", Rcpp::_["message"] = e.what(),
      Rcpp::_["triples"] = e.triples, Rcpp::_["estimated"] = e.estimated,
      Rcpp::_["most"] = e.most, Rcpp::_["fits"] = e.fits);
}

/// A column with one value from each element of the answer.
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

// Prepares a search for triples of rows with at least this similarity. request:
// as for searches, with the limits num_threads and max_memory. contains: rows
// from 1, of which a triple must have at least one; empty: all triples. stage:
// from 1, and the number of stages. path: "auto", "pairs" or "all". plan: the
// expected work (TripleForecast); triples: NA if unknown.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_open_triples(SEXP values, Rcpp::List request,
                            double min_similarity, Rcpp::IntegerVector contains,
                            Rcpp::NumericVector stage, std::string path) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    TripleQuestion question;
    question.least = min_similarity;
    question.contains = bind::numbers_from(contains);
    question.path = path_of(path);
    take_stage(stage, question);
    std::unique_ptr<Opened> opened(new Opened);
    opened->search.reset(
        new cpu::TripleSearch(bind::request_from(request), question, *source,
                              progress.get(), scanner_of(request)));
    const cpu::TripleForecast forecast = opened->search->forecast();
    const Rcpp::List plan = Rcpp::List::create(
        Rcpp::_["by_pairs"] = forecast.path == TriplePath::pairs,
        Rcpp::_["sampled"] = forecast.sampled,
        Rcpp::_["pairs"] = forecast.pairs, Rcpp::_["all"] = forecast.all,
        Rcpp::_["triples"] = forecast.triples < 0 ? NA_REAL : forecast.triples,
        Rcpp::_["sample_found"] = forecast.sample_found,
        Rcpp::_["comparisons"] = forecast.comparisons);
    return Rcpp::List::create(
        Rcpp::_["handle"] = Handle(opened.release(), false),
        Rcpp::_["plan"] = plan);
  });
}

// Frees the memory of the handle's search, also on GPUs. Repeated calls do
// nothing.
// [[Rcpp::export(rng = false)]]
void cpp_close_triples(SEXP handle) {
  Opened* const opened = static_cast<Opened*>(R_ExternalPtrAddr(handle));
  R_ClearExternalPtr(handle);
  if (opened != nullptr && opened->process == static_cast<long>(getpid()))
    delete opened;
}

// Finds the triples of `part`, from 1, of `parts`, which follow one another in
// order of the triples' owners. More triples than max_triples are a failure
// "too_many_triples" with triples, estimated, most, fits (a threshold; Inf:
// none; NaN: unknown). With `stops` it occurs at once. Only the request's
// progress is used. Tables of alleles have `alleles`, the number of the entry
// from 1, in place of the bounds.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_find_triples(SEXP handle, double part, double parts,
                            double max_triples, bool stops, bool with_pairs,
                            Rcpp::List request) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    cpu::TripleSearch::Part asked;
    asked.part = part - 1;
    asked.parts = parts;
    asked.most = max_triples;
    asked.stops = stops;
    asked.by_owner = true;
    asked.with_pairs = with_pairs;
    const Opened& opened = *Handle(handle).checked_get();
    cpu::TriplesFound found;
    try {
      found = opened.search->find(asked, progress.get());
    } catch (const TooManyTriples& e) {
      return failure_of(e);
    }
    const std::vector<Triple>& all = found.triples;
    const std::vector<TriplePairs>& pairs = found.pairs;
    const bool is_table = opened.search->is_table();
    Rcpp::List columns = Rcpp::List::create(
        Rcpp::_["from"] = numbers(all, [](const Triple& t) { return t.from; }),
        Rcpp::_["to"] = numbers(all, [](const Triple& t) { return t.to; }),
        Rcpp::_["third"] =
            numbers(all, [](const Triple& t) { return t.third; }),
        Rcpp::_["similarity"] = column_of<Rcpp::NumericVector>(
            all, REALSXP, [](const Triple& t) { return t.similarity; }));
    if (with_pairs && is_table)
      columns["alleles"] = column_of<Rcpp::IntegerVector>(
          pairs, INTSXP, [](const TriplePairs& p) { return p.entry + 1; });
    if (with_pairs) {
      columns["pair_from_to"] =
          doubles(pairs, [](const TriplePairs& p) { return p.from_to; });
      columns["pair_from_third"] =
          doubles(pairs, [](const TriplePairs& p) { return p.from_third; });
      columns["pair_to_third"] =
          doubles(pairs, [](const TriplePairs& p) { return p.to_third; });
    }
    if (with_pairs && !is_table) {
      columns["at_least"] =
          doubles(pairs, [](const TriplePairs& p) { return p.at_least; });
      columns["at_most"] =
          doubles(pairs, [](const TriplePairs& p) { return p.at_most; });
    }
    columns["stats"] = list_of(found.stats);
    columns["checksum"] = hexadecimal(found.checksum);
    return columns;
  });
}

// The k triples of each row (of `contains`, in its order; empty: of all), and
// for tables of alleles the number of the entry, from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_nearest_triples(SEXP values, Rcpp::List request, int k,
                               Rcpp::IntegerVector contains, std::string path) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    Request asked = bind::request_from(request);
    asked.k = k;
    const cpu::NearestTriples found =
        cpu::nearest_triples(asked, bind::numbers_from(contains), path_of(path),
                             *source, progress.get(), scanner_of(request));
    const std::int64_t rows = static_cast<std::int64_t>(found.lists.size());
    Rcpp::IntegerVector second(bind::new_vector(INTSXP, rows * k));
    Rcpp::IntegerVector third(bind::new_vector(INTSXP, rows * k));
    Rcpp::IntegerVector alleles(bind::new_vector(INTSXP, rows * k));
    Rcpp::NumericVector similarity(bind::new_vector(REALSXP, rows * k));
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto& list = found.lists[static_cast<std::size_t>(i)];
      for (std::int64_t r = 0; r < k; ++r) {
        const R_xlen_t at = static_cast<R_xlen_t>(r * rows + i);
        const std::size_t rank = static_cast<std::size_t>(r);
        const bool known = rank < list.size();
        second[at] = known ? list[rank].second + 1 : NA_INTEGER;
        third[at] = known ? list[rank].third + 1 : NA_INTEGER;
        alleles[at] = known ? list[rank].entry + 1 : NA_INTEGER;
        similarity[at] = known ? list[rank].similarity : NA_REAL;
      }
    }
    const Rcpp::IntegerVector dim =
        Rcpp::IntegerVector::create(static_cast<int>(rows), k);
    second.attr("dim") = dim;
    third.attr("dim") = dim;
    alleles.attr("dim") = dim;
    similarity.attr("dim") = dim;
    Rcpp::List answer =
        Rcpp::List::create(Rcpp::_["second"] = second, Rcpp::_["third"] = third,
                           Rcpp::_["similarity"] = similarity,
                           Rcpp::_["stats"] = list_of(found.stats),
                           Rcpp::_["checksum"] = hexadecimal(found.checksum));
    if (asked.metric->is_table()) answer["alleles"] = alleles;
    return answer;
  });
}

// breaks: ascending. counts: first below all bins, then for [breaks[i],
// breaks[i + 1]), where the last bin includes its upper end, last above all
// bins. stage: from 1, and the number of stages; part: the same within the
// stage.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_triple_histogram(SEXP values, Rcpp::List request,
                                std::vector<double> breaks,
                                Rcpp::NumericVector stage,
                                Rcpp::NumericVector part) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    TripleQuestion question;
    take_stage(stage, question);
    const cpu::TripleCounts found = cpu::count_triples(
        bind::request_from(request), breaks, question, part[0] - 1, part[1],
        *source, progress.get(), scanner_of(request));
    Rcpp::NumericVector counts;
    counts.push_back(found.below);
    for (const double count : found.counts) counts.push_back(count);
    counts.push_back(found.above);
    return Rcpp::List::create(Rcpp::_["counts"] = counts,
                              Rcpp::_["checksum"] = hexadecimal(found.checksum),
                              Rcpp::_["stats"] = list_of(found.stats));
  });
}

// Prepares all pairs (num_way 2) or triples (3) of rows, one byte each: see
// SimilarityBytes.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_open_bytes(SEXP values, Rcpp::List request, int num_way) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const std::unique_ptr<RowSource> source = bind::row_source(values, request);
    std::unique_ptr<cpu::SimilarityBytes> bytes(new cpu::SimilarityBytes(
        bind::request_from(request), num_way, *source, progress.get()));
    return Rcpp::List::create(
        Rcpp::_["handle"] =
            Rcpp::XPtr<cpu::SimilarityBytes>(bytes.release(), true));
  });
}

// The next bytes, about `most`; an empty raw vector at the end.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_next_bytes(SEXP handle, double most, Rcpp::List request) {
  return bind::guarded([&]() -> Rcpp::List {
    const std::unique_ptr<Progress> progress = bind::r_progress(request);
    const std::vector<std::uint8_t> bytes =
        Rcpp::XPtr<cpu::SimilarityBytes>(handle).checked_get()->next(
            static_cast<std::int64_t>(most), progress.get());
    Rcpp::RawVector raw(
        bind::new_vector(RAWSXP, static_cast<std::int64_t>(bytes.size())));
    std::copy(bytes.begin(), bytes.end(), raw.begin());
    return Rcpp::List::create(Rcpp::_["bytes"] = raw);
  });
}
