#pragma once

// Buffers for the answers of searches, which tests compare bit for bit.

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/contract/request.hpp"
#include "core/search/within_answer.hpp"

inline bool same_bits(const std::vector<double>& a,
                      const std::vector<double>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), sizeof(double) * a.size()) == 0;
}

/// k neighbours of each row; -7 marks entries that were not written.
struct Answer {
  Answer(std::int64_t rows, std::int64_t k)
      : index(static_cast<std::size_t>(rows * k), -7),
        distance(index.size(), -7.0),
        correlation(index.size(), -7.0) {
    view.rows = rows;
    view.index = index.data();
    view.distance = distance.data();
    view.correlation = correlation.data();
    view.missing_index = -1;
    view.missing_value = -1.0;
  }
  bool operator==(const Answer& other) const {
    return index == other.index && same_bits(distance, other.distance) &&
           same_bits(correlation, other.correlation);
  }
  std::vector<std::int32_t> index;
  std::vector<double> distance, correlation;
  fsknn::Neighbours view;
};

/// Lists of any length, one after another, as those of all pairs within a
/// distance.
class Pairs final : public fsknn::WithinRows {
 public:
  void allocate(const std::vector<std::int32_t>& counts) override {
    count = counts;
    start_.assign(1, 0);
    for (const std::int32_t c : counts)
      start_.push_back(start_.back() + static_cast<std::size_t>(c));
    index.assign(start_.back(), -7);
    distance.assign(start_.back(), -7.0);
    correlation.assign(start_.back(), -7.0);
  }
  Row row(std::int64_t row) override {
    const std::size_t at = start_[static_cast<std::size_t>(row)];
    return {index.data() + at, distance.data() + at, correlation.data() + at};
  }
  bool operator==(const Pairs& other) const {
    return count == other.count && index == other.index &&
           same_bits(distance, other.distance) &&
           same_bits(correlation, other.correlation);
  }
  std::vector<std::int32_t> count, index;
  std::vector<double> distance, correlation;

 private:
  std::vector<std::size_t> start_;
};
