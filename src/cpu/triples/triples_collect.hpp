#pragma once

// Collects triples; those beyond the limit are only counted.

#include <atomic>
#include <mutex>
#include <vector>

#include "core/search/triples.hpp"

namespace fsknn {
namespace cpu {

class TripleCollector {
 public:
  /// enough: thrown as soon as there are more than `most`; null: further
  /// triples are only counted.
  TripleCollector(const PreparedPoints& points, double least, double most,
                  const TooManyTriples* enough)
      : points_(points), least_(least), most_(most), enough_(enough) {}

  /// One thread's part.
  class Taker {
   public:
    explicit Taker(TripleCollector& all) : all_(all) {}
    Taker(const Taker&) = delete;
    Taker& operator=(const Taker&) = delete;
    /// Takes three places with their similarity, which may be below the least.
    void take(std::int64_t a, std::int64_t b, std::int64_t c,
              double similarity) {
      stats.candidates += 1;
      stats.reranked += 1;
      if (!(similarity >= all_.least_)) return;
      tally_.add(1.0 - similarity);
      std::int64_t at[] = {a, b, c};
      std::sort(at, at + 3);
      const Triple triple =
          triple_at(all_.points_, at[0], at[1], at[2], similarity);
      checksum_ += checksum_of(triple);
      stats.triples += 1;
      // Triples beyond the limit are only counted.
      if (static_cast<double>(
              all_.count_.fetch_add(1, std::memory_order_relaxed)) < all_.most_)
        found_.push_back(triple);
      else if (all_.enough_ != nullptr)
        throw TooManyTriples(*all_.enough_);
    }
    /// Call at the end, one thread at a time.
    void merge() {
      all_.tally_.add_all(tally_);
      all_.checksum_ += checksum_;
      all_.stats_.add(stats);
      all_.found_.insert(all_.found_.end(), found_.begin(), found_.end());
      std::vector<Triple>().swap(found_);
    }
    TripleStats stats;

   private:
    TripleCollector& all_;
    DistanceTally tally_;
    std::uint64_t checksum_ = 0;
    std::vector<Triple> found_;
  };

  /// Returns all triples found, in any order. Throws TooManyTriples.
  std::vector<Triple> finish() {
    const double count = static_cast<double>(count_.load());
    if (count > most_)
      throw TooManyTriples(count, false, most_,
                           threshold_that_fits(tally_, most_));
    return std::move(found_);
  }
  std::uint64_t checksum() const { return checksum_; }
  const TripleStats& stats() const { return stats_; }

 private:
  const PreparedPoints& points_;
  const double least_, most_;
  const TooManyTriples* const enough_;
  std::atomic<std::int64_t> count_{0};
  DistanceTally tally_;
  std::uint64_t checksum_ = 0;
  TripleStats stats_;
  std::vector<Triple> found_;
};

}  // namespace cpu
}  // namespace fsknn
