#pragma once

// Searches over common samples, by the engine or by definition.

#include <cstdint>

#include "answers.hpp"
#include "cases.hpp"
#include "core/search/brute.hpp"
#include "cpu/search/engine.hpp"

using MaskedFinder = void (*)(const fsknn::Request&, const fsknn::RowSource&,
                              const fsknn::RowSource*,
                              const fsknn::Neighbours&);
inline void masked_engine(const fsknn::Request& r,
                          const fsknn::RowSource& points,
                          const fsknn::RowSource* queries,
                          const fsknn::Neighbours& out) {
  fsknn::Stats stats;
  fsknn::cpu::find_neighbours(r, points, queries, out, nullptr, &stats);
}

inline Answer find_masked(MaskedFinder search, const fsknn::Request& r,
                          const Matrix& m, const Matrix* q = nullptr) {
  Answer found(q != nullptr ? q->n : m.n, r.k);
  const auto points = m.source();
  const auto queries = q != nullptr ? q->source() : points;
  search(r, points, q != nullptr ? &queries : nullptr, found.view);
  return found;
}

inline fsknn::Request masked_request(const fsknn::MetricEntry& metric,
                                     std::int64_t k,
                                     std::int64_t min_pairs = 3) {
  fsknn::Request r;
  r.k = k;
  r.metric = &metric;
  r.na_pairwise = true;
  r.min_pairs = min_pairs;
  return r;
}
