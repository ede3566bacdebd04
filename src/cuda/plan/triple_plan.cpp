#include "cuda/plan/triple_plan.hpp"

#include <algorithm>

namespace fsknn {
namespace cuda {
namespace {

// The number of apexes whose others are listed with one wait for the device.
constexpr std::int64_t kApexes = 256;

// The bytes of a pool's rows, enough that a kernel works for some milliseconds.
constexpr double kPoolBytes = 2e9;

constexpr std::int64_t kCandidates = std::int64_t{1} << 22;

// The smallest sizes for which a second lane pays.
constexpr std::int64_t kFewApexes = 16;
constexpr std::int64_t kFewTiles = 4;  // of candidates

// A candidate has 16 bytes and a result 24.
constexpr double kCandidateBytes = 40;

// An apex's lists have an entry for each place: its others, those of them that
// are rows, and the sums with them.
constexpr double kListedBytes = 12;

// The row's code, and its numbers.
double bytes_of_pool_row(const TripleSizes& sizes) {
  return 2.0 * static_cast<double>(sizes.depth) + 32.0;
}

// All points but one may be the others of an apex, and all of these but one the
// lower points: squares have room for both.
std::int64_t most_pool_rows(const TripleSizes& sizes) {
  return pool_rows_of(sizes, sizes.num_points, sizes.num_points - 1);
}

TriplePlan least_plan(const TripleSizes& sizes) {
  TriplePlan plan;
  plan.lanes = 1;
  plan.apexes = 1;
  plan.pool_rows = most_pool_rows(sizes);
  plan.candidates = pairs_of_tile(sizes);
  return plan;
}

}  // namespace

TripleForms::TripleForms(std::int64_t features, const GpuFacts& gpus)
    : num_features(features) {
  // Hopper's instructions need this much shared memory in a block.
  constexpr int hopper = 90;
  constexpr std::int64_t shared = 230000;
  if (gpus.capability == hopper && gpus.most_capability == hopper &&
      gpus.shared_bytes >= shared &&
      num_features <= TripleBitBlock::most_features)
    most_bits = TripleBitBlock::most_bits;
}

TripleSizes TripleForms::sizes(TripleSizes sizes, std::int32_t largest,
                               double bytes_usable) const {
  sizes.bits = 0;
  sizes.depth = depth_of_triples(num_features);
  if (largest < 1 || largest > most_bits) return sizes;
  TripleSizes codes = sizes;
  codes.bits = largest;
  codes.depth = depth_of_triple_bits(num_features, largest);
  // Squares and their candidates take more memory than tiles. Half of the
  // memory is left for the other needs of a search.
  if (bytes_usable > 0 && least_bytes_of_triples(codes) > bytes_usable / 2)
    return sizes;
  return codes;
}

TripleSizes sizes_of_tables(TripleSizes sizes, std::int64_t num_features,
                            int copies) {
  sizes.copies = copies;
  sizes.bits = copies == 2 ? TripleBitBlock::table_bits : copies;
  sizes.depth = depth_of_triple_bits(num_features, sizes.bits);
  return sizes;
}

std::int64_t pairs_of_tile(const TripleSizes& sizes) {
  return sizes.bits > 0 ? TripleBitBlock::pairs : TripleBlock::pairs;
}

std::int64_t pool_rows_of(const TripleSizes& sizes, std::int64_t columns,
                          std::int64_t rows) {
  return sizes.bits > 0 ? bit_pool_rows(columns, rows, sizes.apart()) : columns;
}

double bytes_of_points(const TripleSizes& sizes) {
  const double n = static_cast<double>(sizes.num_points);
  // Tables need the sum of products of each pair of points.
  const double pairs = sizes.copies > 0 ? 4.0 * n : 0.0;
  return n * (8.0 * static_cast<double>(sizes.padded) +
              2.0 * static_cast<double>(sizes.depth) + pairs + 160.0) +
         1e4;
}

double bytes_of_lane(const TripleSizes& sizes, const TriplePlan& plan) {
  const double n = static_cast<double>(sizes.num_points);
  const double row = bytes_of_pool_row(sizes);
  const double of_apex =
      kListedBytes * n + 128.0 + 4.0 * static_cast<double>(sizes.num_alike);
  return static_cast<double>(plan.apexes) * of_apex +
         static_cast<double>(plan.pool_rows) * row +
         static_cast<double>(plan.candidates) * kCandidateBytes +
         16.0 * static_cast<double>(sizes.num_breaks) + 1e4;
}

double least_bytes_of_triples(const TripleSizes& sizes) {
  return bytes_of_points(sizes) + bytes_of_lane(sizes, least_plan(sizes));
}

TriplePlan plan_triples(const TripleSizes& sizes, double bytes_usable) {
  const double n = static_cast<double>(sizes.num_points);
  const double row = bytes_of_pool_row(sizes);
  TriplePlan plan;
  plan.apexes = std::min(kApexes, sizes.num_points);
  plan.pool_rows =
      std::max(most_pool_rows(sizes),
               static_cast<std::int64_t>(std::min(
                   n * static_cast<double>(plan.apexes), kPoolBytes / row)));
  plan.candidates = kCandidates;
  if (!(bytes_usable > 0)) return plan;
  const TriplePlan least = least_plan(sizes);
  const double room = bytes_usable - bytes_of_points(sizes);
  const auto fits = [&](const TriplePlan& p) {
    return p.lanes * bytes_of_lane(sizes, p) <= room;
  };
  if (!fits(least)) {
    plan.lanes = 0;
    return plan;
  }
  // Halves the largest part until the plan fits.
  while (!fits(plan)) {
    const auto half = [](std::int64_t& size, std::int64_t at_least) {
      size = std::max(at_least, size / 2);
    };
    const double pool = static_cast<double>(plan.pool_rows) * row;
    const double lists = static_cast<double>(plan.apexes) * kListedBytes * n;
    const double candidates =
        static_cast<double>(plan.candidates) * kCandidateBytes;
    const bool one = plan.lanes == 1;
    const std::int64_t few_apexes =
        one ? 1 : std::min(kFewApexes, sizes.num_points);
    const std::int64_t few =
        one ? least.candidates : kFewTiles * least.candidates;
    const bool pool_left = plan.pool_rows > least.pool_rows;
    const bool apexes_left = plan.apexes > few_apexes;
    const bool candidates_left = plan.candidates > few;
    if (pool_left && (pool >= std::max(lists, candidates) ||
                      (!apexes_left && !candidates_left)))
      half(plan.pool_rows, least.pool_rows);
    else if (candidates_left && (candidates >= lists || !apexes_left))
      half(plan.candidates, few);
    else if (apexes_left)
      half(plan.apexes, few_apexes);
    else
      plan.lanes = 1;
  }
  return plan;
}

std::int64_t tiles_at_once(const TripleSizes& sizes) {
  if (sizes.bits > 0) return 65535;
  constexpr double features = 4e12;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(
             std::min(1e9, features / TripleBlock::pairs /
                               static_cast<double>(sizes.depth))));
}

}  // namespace cuda
}  // namespace fsknn
