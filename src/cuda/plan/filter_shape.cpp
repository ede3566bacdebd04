#include "cuda/plan/filter_shape.hpp"

#include <algorithm>

namespace fsknn {
namespace cuda {
std::int32_t candidates_for(std::int64_t k) {
  // A round adds about k candidates, the first two k more. The rest is for
  // random variation.
  return k <= 32     ? 256
         : k <= 64   ? 512
         : k <= 256  ? 1024
         : k <= 512  ? 2048
         : k <= 1024 ? 4096
                     : 8192;
}

std::int32_t candidates_for_queries(std::int64_t k, std::int64_t num_queries) {
  // The exact step takes lists of this length by warps, for so small a k.
  constexpr std::int32_t longer = 1024;
  return k <= 32 && num_queries <= kFilterBlock ? longer : candidates_for(k);
}

std::int64_t fill_blocks_for(std::int64_t num_points, std::int64_t k) {
  const FilterBlocks blocks(num_points);
  const std::int64_t a_block = num_points / blocks.count;
  const std::int64_t fewest = ceil_div(k + k / 32 + 8, a_block) | 1;
  // The k-th of one block would be near the median of all points, so that the
  // next round would pass half of its pairs.
  return k > kFilterBlock / 4 ? std::max<std::int64_t>(3, fewest) : fewest;
}

std::int64_t queries_at_a_time(std::int64_t num_queries, std::int64_t k) {
  const std::int64_t most =
      std::max(kFilterBlock, kListBytes / (8 * candidates_for(k)) /
                                 kFilterBlock * kFilterBlock);
  return std::min(num_queries, most);
}

WideRows::WideRows(std::int64_t num_slots, std::int32_t list_capacity,
                   std::int64_t form_bytes, std::int64_t padded)
    : capacity(kFilterBlock) {
  while (2 * capacity <= std::min(kMostCandidates, 16 * list_capacity))
    capacity *= 2;
  constexpr double bytes = 64.0 * (1 << 20);
  constexpr std::int64_t most = 64 * kFilterBlock;
  // The bytes of a row in the filter's form, in doubles, and of its state.
  row_bytes = static_cast<double>(form_bytes + padded * 8 + 32);
  const std::int64_t fit = static_cast<std::int64_t>(bytes / row_bytes);
  const std::int64_t have_lists = num_slots * list_capacity / capacity;
  rows = std::max(kFilterBlock, std::min({most, fit, have_lists}) /
                                    kFilterBlock * kFilterBlock);
  own_lists = have_lists < kFilterBlock;
}

FilterShape filter_shape(const PlanInput& in, const GpuFacts& gpus,
                         FilteredSearch search) {
  FilterAsked asked;
  asked.search = search == FilteredSearch::graph && in.num_queries > 0
                     ? FilteredSearch::queries
                     : search;
  asked.filter = in.filter;
  asked.unit = in.unit_dot;
  asked.squares = in.squares;
  asked.alleles = in.alleles;
  asked.num_points = in.num_points;
  // Held points keep one form, which serves any number of queries.
  asked.num_rows =
      in.num_queries > 0 && !in.held ? in.num_queries : in.num_points;
  asked.num_features = in.num_features;
  asked.k = in.k;
  asked.asked = in.asked;
  FilterShape shape = {choose_filter(asked, gpus)};
  if (!shape.usable()) return shape;
  shape.bytes_sums =
      static_cast<double>(gpus.multiprocessors) * shape.rows.bytes_sums;
  shape.capacity = candidates_for(in.k);
  shape.fill_blocks = fill_blocks_for(in.num_points, in.k);
  return shape;
}

FilterShape with_room_to_centre(const FilterShape& shape,
                                const GpuFacts& gpus) {
  FilterShape roomy = shape;
  roomy.make_room_to_centre();
  roomy.bytes_sums =
      static_cast<double>(gpus.multiprocessors) * roomy.rows.bytes_sums;
  return roomy;
}

double bytes_filter(const PlanInput& in, const FilterShape& shape) {
  const double slots =
      static_cast<double>(FilterBlocks(in.num_points).num_slots());
  const double form = static_cast<double>(shape.rows.slot_bytes());
  const double lists = static_cast<double>(shape.capacity) * 8 + 16;
  if (in.num_queries > 0) {
    const std::int64_t rows = queries_at_a_time(in.num_queries, in.k);
    const double of_queries =
        8.0 * candidates_for_queries(in.k, in.num_queries) + 16;
    return shape.bytes_sums + slots * (form + 8) +
           static_cast<double>(query_slots(rows)) * (form + of_queries + 16) +
           static_cast<double>(rows) * static_cast<double>(in.k) * 12;
  }
  const double points = static_cast<double>(in.num_points);
  const double found = static_cast<double>(in.k) * 12;
  if (shape.tree == TreeUse::never)
    return shape.bytes_sums + slots * (form + lists) + points * (found + 16);
  const double share =
      static_cast<double>(kFilterBlock) *
      static_cast<double>(ceil_div(FilterBlocks(in.num_points).count,
                                   std::max(1, in.num_workers) * shape.parts));
  return shape.bytes_sums + slots * (form + 16) + points * 16 +
         share * (8.0 * candidates_in_tree(in.k) + found);
}

}  // namespace cuda
}  // namespace fsknn
