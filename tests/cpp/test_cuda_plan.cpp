// The parts of the CUDA engine that need no device: its plan, and the GPUs on
// which a build runs.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/architectures.hpp"
#include "cuda/plan/all_pairs.hpp"
#include "cuda/plan/estimates.hpp"
#include "cuda/plan/lane_tile.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/plan/panels.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/plan/rounds.hpp"

using fsknn::FilterKind;
using fsknn::Plan;
using fsknn::PlanInput;
using fsknn::cuda::candidates_for;
using fsknn::cuda::candidates_for_queries;
using fsknn::cuda::check_metric;
using fsknn::cuda::estimated_rank;
using fsknn::cuda::fill_blocks_for;
using fsknn::cuda::FilterBlocks;
using fsknn::cuda::FilterJobs;
using fsknn::cuda::FilterRounds;
using fsknn::cuda::first_block_of;
using fsknn::cuda::GpuFacts;
using fsknn::cuda::kChunkUnit;
using fsknn::cuda::kFilterBlock;
using fsknn::cuda::plan_cuda;
using fsknn::cuda::runs_on;
using fsknn::cuda::schedule_filter;
using fsknn::cuda::use_capacity;

namespace {

/// A GPU with that much free memory that can run every filter; below, one
/// without tensor cores.
GpuFacts modern(double bytes_free) {
  GpuFacts gpus;
  gpus.bytes_free = bytes_free;
  gpus.capability = 90;
  gpus.shared_bytes = 232448;
  return gpus;
}
GpuFacts old(double bytes_free) {
  GpuFacts gpus = modern(bytes_free);
  gpus.capability = 70;
  return gpus;
}

fsknn::cuda::FilterShape shape_held(const PlanInput& in, const GpuFacts& gpus) {
  return filter_shape(in, gpus, fsknn::cuda::FilteredSearch::graph);
}
fsknn::cuda::FilterShape shape_in_panels(const PlanInput& in,
                                         const GpuFacts& gpus) {
  return filter_shape(in, gpus, fsknn::cuda::FilteredSearch::graph_in_panels);
}

PlanInput input(std::int64_t n, std::int64_t d, std::int64_t k, int devices,
                std::int64_t chunk_size = 0, std::int64_t queries = 0) {
  PlanInput in;
  in.num_points = n;
  in.num_features = d;
  in.num_queries = queries;
  in.k = k;
  in.num_workers = devices;
  in.chunk_size = chunk_size;
  return in;
}

// Every split belongs to one segment, and every point to a chunk.
void check_sound(const Plan& p, int devices) {
  const std::int64_t rows = p.num_queries > 0 ? p.num_queries : p.num_points;
  CHECK(p.chunk_size % kChunkUnit == 0);
  CHECK(p.chunk_size > 0);
  CHECK(p.num_splits * p.chunk_size >= rows);
  CHECK((p.num_splits - 1) * p.chunk_size < rows);
  CHECK(p.padded_points >= p.num_points);
  CHECK(p.padded_points - p.num_points < p.chunk_size);
  CHECK(p.num_segments <= std::min<std::int64_t>(devices, p.num_splits));
  CHECK(p.num_segments * p.splits_per_segment >= p.num_splits);
  CHECK((p.num_segments - 1) * p.splits_per_segment < p.num_splits);
  // In a graph of held points the chunks of a band are computed once.
  const std::int64_t all = p.num_splits * p.chunks_per_split;
  CHECK(p.num_chunks <= all);
  if (p.num_queries > 0 || p.streamed) CHECK(p.num_chunks == all);
  CHECK(2 * p.num_chunks > all);
}

}  // namespace

TEST_CASE("a CUDA plan covers every point once") {
  for (const std::int64_t n : {2, 63, 64, 65, 1000, 24158, 1533876})
    for (const int devices : {1, 2, 3, 8})
      for (const std::int64_t chunk : {0, 1, 64, 1000, 4096, 1048576})
        for (const std::int64_t queries : {0, 1, 5000}) {
          const Plan p =
              plan_cuda(input(n, 295, 1, devices, chunk, queries), old(80e9));
          check_sound(p, devices);
          if (chunk > 0 && chunk < n) CHECK(p.chunk_size - chunk < kChunkUnit);
        }
}

TEST_CASE("the study's matrix is dealt evenly to four GPUs") {
  const Plan p = plan_cuda(input(24158, 295, 20, 4), old(80e9));
  CHECK(p.num_segments == 4);
  CHECK(p.num_splits % 4 == 0);
  CHECK(p.padded_features == 296);
}

TEST_CASE("a small matrix uses fewer GPUs") {
  CHECK(plan_cuda(input(500, 10, 5, 4), old(80e9)).num_segments == 1);
  CHECK(plan_cuda(input(500, 10, 5, 4, 128), old(80e9)).num_segments == 4);
}

TEST_CASE("an automatic chunk fits the memory that is free") {
  const PlanInput in = input(100000, 300, 50000, 1);
  const Plan roomy = plan_cuda(in, old(80e9));
  const Plan tight = plan_cuda(in, old(2e9));
  CHECK(roomy.bytes_peak <= 80e9);
  CHECK(tight.bytes_peak <= 2e9);
  CHECK(tight.chunk_size < roomy.chunk_size);
  check_sound(tight, 1);
  // If nothing fits, the plan uses the smallest chunk.
  CHECK(plan_cuda(in, old(1.0)).chunk_size == kChunkUnit);
}

TEST_CASE("points are not kept for few queries") {
  const Plan few = plan_cuda(input(1533876, 295, 20, 1, 0, 1), modern(140e9));
  CHECK(few.streamed);
  CHECK(few.bytes_peak < 200e6);
  check_sound(few, 1);
  CHECK(plan_cuda(input(1533876, 295, 20, 1, 0, 1), {}).streamed);
  CHECK_FALSE(
      plan_cuda(input(1533876, 295, 20, 1, 0, 65), modern(140e9)).streamed);
  CHECK_FALSE(plan_cuda(input(8192, 295, 20, 1, 0, 1), modern(140e9)).streamed);
}

TEST_CASE("held points have one filter for any number of queries") {
  for (const bool unit : {true, false}) {
    std::string form;
    for (const std::int64_t queries : {1, 16, 65, 300, 100000}) {
      PlanInput in = input(100000, 295, 20, 1, 0, queries);
      in.filter = unit ? FilterKind::product : FilterKind::difference;
      in.unit_dot = unit;
      in.held = true;
      const auto plan = plan_cuda(in, modern(140e9));
      CHECK(plan.filtered);
      CHECK_FALSE(plan.streamed);
      if (form.empty()) form = plan.filter;
      CHECK(plan.filter == form);
      in.held = false;
      CHECK(plan_cuda(in, modern(140e9)).filtered == (queries >= 256));
    }
  }
}

TEST_CASE("chunks are smaller where there are very many features") {
  CHECK(plan_cuda(input(100000, 50000, 20, 1), {}).chunk_size <
        plan_cuda(input(100000, 300, 20, 1), {}).chunk_size);
}

TEST_CASE("in a band two points meet once, for both") {
  using fsknn::cuda::PairBand;
  for (const bool graph : {true, false})
    for (const std::int64_t splits : {1, 2, 7, 12})
      for (const std::int64_t of_device : {1, 3, 12})
        for (const std::int64_t at_once : {1, 2, 5, 12}) {
          // Counts how often a split's lists have seen another split's points.
          std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
          std::int64_t made = 0, counted = 0;
          for (std::int64_t first = 0; first < splits; first += of_device) {
            const std::int64_t end = std::min(splits, first + of_device);
            fsknn::cuda::for_bands(
                first, end, at_once, graph, [&](const PairBand& band) {
                  CHECK(band.end - band.first <= at_once);
                  counted += band.num_chunks(splits);
                  for (std::int64_t s = band.first; s < band.end; ++s)
                    for (std::int64_t c = 0; c < splits; ++c) {
                      const PairBand::Meeting meeting = band.meeting(s, c);
                      if (meeting == PairBand::Meeting::made) continue;
                      ++made;
                      ++seen[{s, c}];
                      if (meeting == PairBand::Meeting::both) ++seen[{c, s}];
                      CHECK((meeting == PairBand::Meeting::own_rows) ==
                            (graph && s == c));
                    }
                  return true;
                });
          }
          CHECK(made == counted);
          CHECK(static_cast<std::int64_t>(seen.size()) == splits * splits);
          for (const auto& entry : seen) CHECK(entry.second == 1);
          if (graph && of_device >= splits && at_once >= splits)
            CHECK(made == splits * (splits + 1) / 2);
        }
}

TEST_CASE("many neighbours of long rows are found without a filter") {
  using fsknn::cuda::CudaPlan;
  GpuFacts hopper = modern(80e9);
  hopper.most_capability = 90;
  hopper.multiprocessors = 132;
  PlanInput in = input(16384, 4096, 512, 1);
  in.unit_dot = in.correlation = true;
  const CudaPlan p = plan_cuda(in, hopper);
  CHECK_FALSE(p.filtered);
  CHECK_FALSE(p.streamed);
  CHECK(p.doubles.blocks == 132);
  CHECK(p.doubles.splits_at_once == p.num_splits);
  CHECK(p.num_chunks == p.num_splits * (p.num_splits + 1) / 2);
  // Memory for both panels lane by lane, two chunks, and all lists.
  const double side = static_cast<double>(p.chunk_size);
  CHECK(p.bytes_working >
        2 * side * 4096 * 8 + 2 * side * side * 8 + 16384.0 * 512 * 12);
  CHECK(p.bytes_peak <= 72e9);

  const auto filtered_with = [&](auto change) {
    PlanInput other = in;
    change(other);
    return plan_cuda(other, hopper).filtered;
  };
  CHECK(filtered_with([](PlanInput& i) { i.k = 128; }));
  CHECK(filtered_with([](PlanInput& i) { i.num_features = 295; }));
  CHECK(filtered_with([](PlanInput& i) { i.num_points = 100000; }));
  CHECK(filtered_with([](PlanInput& i) { i.asked.bits = 16; }));
  CHECK(filtered_with([](PlanInput& i) { i.unit_dot = false; }));
  CHECK(filtered_with([](PlanInput& i) { i.num_queries = 16384; }));
  CHECK_FALSE(filtered_with([](PlanInput& i) {
    i.num_queries = 16384;
    i.k = 1024;
  }));
  // If requested it is used at any cost, depending on the GPU's facts.
  const auto asked = [](PlanInput& i) {
    i.all_pairs = true;
    i.k = 5;
  };
  CHECK_FALSE(filtered_with(asked));
  PlanInput few = in;
  asked(few);
  CHECK(plan_cuda(few, hopper).doubles.blocks == 132);
  GpuFacts other = hopper;
  other.hopper_code = false;
  CHECK(plan_cuda(few, other).doubles.blocks == 0);
  few.num_features = 20;
  CHECK(plan_cuda(few, hopper).doubles.blocks == 0);
  CHECK_FALSE(plan_cuda(few, hopper).filtered);
  // It is used only where it was measured.
  other = hopper;
  other.capability = 80;
  CHECK(plan_cuda(in, other).filtered);
  other = hopper;
  other.most_capability = 100;
  CHECK(plan_cuda(in, other).filtered);
  // It also needs the code for 90a.
  other = hopper;
  other.hopper_code = false;
  CHECK(plan_cuda(in, other).filtered);

  // With less memory chunks become smaller; then fewer splits have lists at a
  // time, and the filter takes over.
  bool filtered = false;
  for (double limit = p.bytes_peak; limit > 1e8; limit *= 0.8) {
    other = hopper;
    other.bytes_limit = limit;
    const CudaPlan less = plan_cuda(in, other);
    CHECK(less.bytes_peak <= limit);
    if (less.doubles.blocks > 0)
      CHECK(less.doubles.splits_at_once == less.num_splits);
    filtered = filtered || less.filtered;
  }
  CHECK(filtered);
  // Each of several GPUs compares its own points once.
  in.num_workers = 2;
  in.chunk_size = 1024;
  const CudaPlan two = plan_cuda(in, hopper);
  REQUIRE(two.doubles.blocks > 0);
  CHECK(two.num_segments == 2);
  CHECK(two.doubles.splits_at_once == two.splits_per_segment);
  CHECK(two.num_chunks == 2 * (8 * 16 - 8 * 7 / 2));
}

TEST_CASE("a graph without a filter takes its bands as memory allows") {
  using fsknn::cuda::CudaPlan;
  const PlanInput in = input(60000, 100, 3000, 1, 4096);
  std::int64_t before = 0;
  for (double limit = 1.5e9; limit < 6e9; limit += 2e8) {
    GpuFacts gpus = old(80e9);
    gpus.bytes_limit = limit;
    const CudaPlan p = plan_cuda(in, gpus);
    if (p.streamed) continue;
    CHECK(p.bytes_peak <= limit);
    CHECK(p.doubles.splits_at_once >= before);
    before = p.doubles.splits_at_once;
  }
  CHECK(before == 15);
}

TEST_CASE("rows lane by lane are whole stages and tiles") {
  using fsknn::cuda::lane_doubles;
  using fsknn::cuda::lane_length;
  CHECK(lane_length(8) == 16);
  CHECK(lane_length(128) == 16);
  CHECK(lane_length(136) == 32);
  CHECK(lane_doubles(1, 8) == 128 * 8 * 16);
  CHECK(lane_doubles(129, 4096) == 256 * 8 * 512);
}

TEST_CASE("graphs of many points by rows of length 1 are filtered") {
  PlanInput in = input(24158, 295, 20, 2);
  in.unit_dot = true;
  const Plan p = plan_cuda(in, modern(80e9));
  CHECK(p.filtered);
  // The work is too small to share, unless chunks are requested.
  CHECK(p.num_workers == 1);
  PlanInput cut = in;
  cut.chunk_size = 4096;
  CHECK(plan_cuda(cut, modern(80e9)).num_workers == 2);
  cut.chunk_size = 24158;
  CHECK(plan_cuda(cut, modern(80e9)).num_workers == 1);
  PlanInput large = in;
  large.num_points = 1533876;
  large.num_workers = 4;
  CHECK(plan_cuda(large, modern(80e9)).num_workers == 4);
  CHECK(p.bytes_filter > 0);
  CHECK(p.bytes_peak >= p.bytes_filter + p.bytes_prepared + p.bytes_working);
  CHECK_FALSE(plan_cuda(in, old(80e9)).filtered);
  CHECK(plan_cuda(in, modern(p.bytes_filter)).streaming.by_row_ranges());
  CHECK_FALSE(plan_cuda(in, modern(p.bytes_filter / 20)).filtered);
  const auto filtered_with = [&](auto change) {
    PlanInput other = in;
    change(other);
    return plan_cuda(other, modern(80e9)).filtered;
  };
  CHECK(filtered_with([](PlanInput& i) { i.k = 2048; }));
  CHECK_FALSE(filtered_with([](PlanInput& i) { i.k = 2049; }));
  CHECK(filtered_with([](PlanInput& i) { i.num_points = 4096; }));
  CHECK_FALSE(filtered_with([](PlanInput& i) { i.num_points = 4095; }));
  CHECK_FALSE(filtered_with([](PlanInput& i) { i.num_queries = 5; }));
  CHECK(filtered_with([](PlanInput& i) { i.num_queries = 300; }));
  CHECK(filtered_with([](PlanInput& i) { i.unit_dot = false; }));
}

TEST_CASE("sums of row_ranges of features are planned for") {
  GpuFacts gpus = modern(80e9);
  gpus.multiprocessors = 132;
  PlanInput in = input(20000, 2048, 20, 1);
  in.unit_dot = in.correlation = true;
  CHECK(shape_in_panels(in, gpus).bytes_sums == 0);
  in.num_features = 2049;
  const double bytes = 132.0 * fsknn::cuda::kFeatureRangeBytes;
  CHECK(shape_in_panels(in, gpus).bytes_sums == bytes);
  const Plan known = plan_cuda(in, gpus), unknown = plan_cuda(in, modern(80e9));
  CHECK(known.bytes_peak == unknown.bytes_peak + bytes);
  CHECK(known.bytes_filter == unknown.bytes_filter + bytes);
  // Products can distinguish rows with more features than float differences
  // can.
  in.num_features = 200000;
  CHECK(shape_in_panels(in, gpus).usable());
  in.unit_dot = in.correlation = false;
  in.filter = FilterKind::difference;
  CHECK_FALSE(shape_in_panels(in, gpus).usable());
}

TEST_CASE("a filtered graph streams where its doubles do not fit") {
  PlanInput in = input(384126, 295, 20, 1);
  in.unit_dot = in.correlation = true;
  const Plan resident = plan_cuda(in, modern(80e9));
  CHECK_FALSE(resident.streamed);
  CHECK(resident.num_passes == 1);
  GpuFacts gpus = modern(80e9);
  bool row_ranges = false;
  for (double share = 0.9; share > 0.01; share *= 0.8) {
    gpus.bytes_limit = share * resident.bytes_peak;
    const fsknn::cuda::CudaPlan p = plan_cuda(in, gpus);
    CHECK(p.bytes_peak <= gpus.bytes_limit);
    CHECK(p.bytes_prepared + p.bytes_working <= p.bytes_peak);
    // A filter is used even with little memory.
    CHECK(p.filtered);
    if (p.streamed) CHECK(p.num_passes > 1);
    CHECK((p.bytes_host > 0) == p.streaming.by_row_ranges());
    // With less memory fewer rows are kept, and the plan never returns to
    // keeping the filter's rows.
    CHECK((!row_ranges || p.streaming.by_row_ranges()));
    row_ranges = p.streaming.by_row_ranges();
    if (share > 0.25) CHECK_FALSE(row_ranges);
  }
  CHECK(row_ranges);
  gpus.bytes_limit = resident.bytes_peak / 4;
  const Plan quarter = plan_cuda(in, gpus);
  CHECK(quarter.streamed);
  CHECK(quarter.filtered);
  CHECK(quarter.num_passes <= 4);
  // At least half of the points stay, so that two ranges suffice.
  const fsknn::cuda::FilterStreaming streaming = fsknn::cuda::filter_streaming(
      in, shape_in_panels(in, gpus), gpus.bytes_usable());
  CHECK(streaming.fits);
  CHECK(2 * streaming.stay_rows >= in.num_points);
  CHECK(streaming.bytes_peak <= gpus.bytes_limit);
}

TEST_CASE("panels and groups have room for each form that may take another's") {
  GpuFacts gpus = modern(80e9);
  gpus.capability = gpus.most_capability = 90;
  for (const FilterKind kind : {FilterKind::difference, FilterKind::overlap,
                                FilterKind::largest, FilterKind::product}) {
    PlanInput in = input(384126, 295, 20, 1);
    in.filter = kind;
    in.squares = kind == FilterKind::product;
    const fsknn::cuda::FilterShape shape = shape_in_panels(in, gpus);
    PlanInput groups = in;
    groups.group_sizes = {200000, 184126};
    const double slots =
        static_cast<double>(FilterBlocks(in.num_points).num_slots());
    const fsknn::cuda::CudaPlan by_group = plan_cuda(groups, gpus);
    CHECK(by_group.groups_at_once);
    gpus.bytes_limit = plan_cuda(in, gpus).bytes_peak / 3;
    const fsknn::cuda::CudaPlan panels = plan_cuda(in, gpus);
    gpus.bytes_limit = 0;
    CHECK(panels.streamed);
    CHECK_FALSE(panels.streaming.by_row_ranges());
    const fsknn::cuda::RowsInForm first = panels.shape.rows;
    CHECK(first.form == shape.rows.form);
    CHECK(by_group.shape.rows.form == first.form);
    CHECK(by_group.shape.rows.slot_bytes() == first.slot_bytes());
    for (fsknn::cuda::RowsInForm rows = first;
         rows.form != fsknn::cuda::NumberForm::none; rows = rows.otherwise()) {
      CHECK(rows.slot_bytes() <= first.slot_bytes());
      const double room = slots * static_cast<double>(rows.slot_bytes());
      CHECK(room < panels.bytes_filter);
      CHECK(room < by_group.bytes_filter);
    }
  }
}

TEST_CASE("a row_range of lists, and what passes by, fits in little memory") {
  const double block = static_cast<double>(kFilterBlock);
  for (const std::int64_t n : {4096, 30000, 384126, 10000000})
    for (const std::int64_t d : {2, 40, 295, 5000})
      for (const std::int64_t k : {1, 20, 300, 1500})
        for (const int devices : {1, 2}) {
          PlanInput in = input(n, d, k, devices);
          in.unit_dot = in.correlation = true;
          const auto shape = shape_in_panels(in, modern(80e9));
          const double row = static_cast<double>((d + 7) / 8 * 8) * 8 + 12;
          bool fitted = false;
          for (double usable = 1e6; usable < 80e9; usable *= 1.7) {
            const auto s =
                fsknn::cuda::row_range_streaming(in, shape, usable, 132);
            // A plan that fits also fits into more memory.
            CHECK((s.fits || !fitted));
            fitted = s.fits;
            if (!s.fits) continue;
            CHECK(s.bytes_peak <= usable);
            CHECK(s.by_row_ranges());
            CHECK(s.fill_blocks * kFilterBlock <= s.capacity);
            const double panels = 2 * static_cast<double>(s.stream_rows) * row +
                                  2 * static_cast<double>(s.panel_blocks) *
                                      block *
                                      static_cast<double>(shape.rows.row_bytes);
            const double row_range =
                static_cast<double>(s.row_range_blocks) * block *
                static_cast<double>(shape.rows.slot_bytes() + 8 * s.capacity);
            CHECK(panels + row_range + 28 * static_cast<double>(n) <
                  s.bytes_peak);
            CHECK(static_cast<double>(s.stay_rows + 2 * s.stream_rows) * row +
                      fsknn::cuda::bytes_answer(s.write_rows, k) <
                  s.bytes_peak);
          }
          CHECK(fitted);
        }
}

TEST_CASE("the panels that long rows' filter forms are made of are planned") {
  PlanInput in = input(8192, 262144, 20, 1);
  in.unit_dot = in.correlation = true;
  GpuFacts gpus = modern(140e9);
  const auto shape = shape_in_panels(in, gpus);
  const double row = 262144.0 * 8 + 12;
  const double forms = static_cast<double>(FilterBlocks(8192).num_slots()) *
                       shape.rows.row_bytes;
  for (double usable = 30e9; usable > 1e9; usable *= 0.9) {
    const auto streaming = fsknn::cuda::filter_streaming(in, shape, usable);
    if (streaming.fits)
      CHECK(streaming.bytes_peak >=
            forms + 2 * kChunkUnit * row +
                2 * static_cast<double>(streaming.stream_rows) * row);
  }
}

TEST_CASE("panels of long rows keep a device busy, and take little of it") {
  for (const std::int64_t features : {300, 4096, 15876, 262144}) {
    PlanInput in = input(2000000, features, 200, 2);
    in.unit_dot = in.correlation = true;
    const GpuFacts gpus = modern(140e9);
    const auto streaming = fsknn::cuda::filter_streaming(
        in, shape_in_panels(in, gpus), gpus.bytes_usable());
    const double row = static_cast<double>((features + 7) / 8 * 8) * 8 + 12;
    const double panel = static_cast<double>(streaming.stream_rows) * row;
    CHECK(panel <= std::max(8.0 * (1 << 20), gpus.bytes_usable() / 64));
    const bool busy = streaming.stream_rows >= fsknn::cuda::kEnoughRows;
    CHECK((busy || panel >= gpus.bytes_usable() / 64 - kChunkUnit * row));
  }
}

TEST_CASE("points come in panels where nothing else fits, queries too") {
  for (const std::int64_t queries : {0, 5000}) {
    PlanInput in = input(100000, 300, 20, 2, 0, queries);
    GpuFacts gpus = old(80e9);
    for (const double limit : {600e6, 200e6, 100e6, 70e6}) {
      gpus.bytes_limit = limit;
      for (const std::int64_t chunk : {0, 64, 4096, 100000}) {
        in.chunk_size = chunk;
        const Plan p = plan_cuda(in, gpus);
        CHECK(p.bytes_peak <= limit);
        check_sound(p, 2);
        if (limit < 200e6) CHECK(p.streamed);
      }
    }
    // With too little memory even for the smallest chunk, the plan reports what
    // it needs.
    in.chunk_size = 0;
    gpus.bytes_limit = 1e5;
    const Plan p = plan_cuda(in, gpus);
    CHECK(p.chunk_size == kChunkUnit);
    CHECK(p.bytes_peak > 1e5);
  }
}

TEST_CASE("rows that are filtered again are bounded, and planned for") {
  for (const std::int64_t n : {4096, 100000, 1533876})
    for (const std::int64_t d : {1, 295, 32768, 262144})
      for (const std::int64_t k : {1, 20, 600, 2048}) {
        PlanInput in = input(n, d, k, 1, 64);
        in.unit_dot = true;
        const GpuFacts gpus = modern(1e14);
        const auto shape = shape_in_panels(in, gpus);
        const std::int64_t slots = FilterBlocks(n).num_slots();
        const fsknn::cuda::WideRows wide(slots, shape.capacity,
                                         shape.rows.slot_bytes(),
                                         fsknn::padded_features(d));
        CHECK(wide.rows % kFilterBlock == 0);
        CHECK(wide.rows > 0);
        CHECK(wide.capacity >= shape.capacity);
        // Their lists are in the memory of the search's lists.
        CHECK_FALSE(wide.own_lists);
        CHECK(wide.rows * wide.capacity <= slots * shape.capacity);
        CHECK((wide.bytes() <= 64 << 20 || wide.rows == kFilterBlock));
        const Plan p = plan_cuda(in, gpus);
        REQUIRE(p.filtered);
        CHECK(p.bytes_peak >= p.bytes_filter + p.bytes_prepared + wide.bytes());
        // Few queries have fewer lists than a block of longer lists needs.
        const fsknn::cuda::WideRows few(kFilterBlock, shape.capacity,
                                        shape.rows.row_bytes, 8);
        CHECK(few.rows == kFilterBlock);
        CHECK(few.own_lists == (few.capacity > shape.capacity));
      }
}

TEST_CASE("a chunk has no more rows than the kernel's grid, nor than help") {
  // Very many queries against few points.
  const PlanInput tall = input(1000, 8, 5, 1, 5000000, 5000000);
  for (const double limit : {0.0, 1e9}) {
    GpuFacts gpus = modern(140e9);
    gpus.bytes_limit = limit;
    CHECK(plan_cuda(tall, gpus).chunk_size <= 65535 * kChunkUnit);
  }
  // Chunks of a filtered graph serve only recomputed rows. A chunk that does
  // not fit becomes smaller before points are streamed.
  PlanInput in = input(200000, 295, 20, 1, 200000);
  in.unit_dot = true;
  const Plan p = plan_cuda(in, modern(80e9));
  CHECK(p.filtered);
  CHECK_FALSE(p.streamed);
  CHECK(p.chunk_size < 200000);
  CHECK(p.bytes_peak <= 80e9);
}

TEST_CASE("no device of a filtered graph is without a block") {
  PlanInput in = input(4096, 30, 5, 64, 64);
  in.unit_dot = true;
  const Plan p = plan_cuda(in, modern(80e9));
  REQUIRE(p.filtered);
  const FilterBlocks blocks(4096);
  for (int w = 0; w < p.num_workers; ++w)
    CHECK(first_block_of(blocks, w, p.num_workers) <
          first_block_of(blocks, w + 1, p.num_workers));
}

TEST_CASE("points that are left out are read, and their places kept") {
  PlanInput in = input(5000, 30, 5, 1);
  in.unit_dot = true;
  const double all_in = plan_cuda(in, modern(80e9)).bytes_peak;
  in.num_given = 100000000;
  CHECK(plan_cuda(in, modern(80e9)).bytes_peak >= all_in + 4 * 99995000.0);
}

TEST_CASE("every point stands in one slot, and blocks are equally full") {
  for (const std::int64_t n : {4096, 4097, 4352, 5000, 99706, 100000}) {
    const FilterBlocks blocks(n);
    CHECK(blocks.count % 2 == 1);
    const std::vector<std::int32_t> places = blocks.places();
    REQUIRE(static_cast<std::int64_t>(places.size()) == blocks.num_slots());
    std::int32_t next = 0;
    for (std::int64_t b = 0; b < blocks.count; ++b) {
      std::int64_t full = 0;
      for (std::int64_t s = 0; s < kFilterBlock; ++s) {
        const std::int32_t place =
            places[static_cast<std::size_t>(b * kFilterBlock + s)];
        if (place < 0) continue;
        CHECK(place == next++);
        ++full;
      }
      CHECK(full - n / blocks.count >= 0);
      CHECK(full - n / blocks.count <= 1);
    }
    CHECK(next == n);
  }
}

namespace {

/// A round ends with the estimate that fits the points met so far, and the next
/// round yields about k candidates.
void check_guesses(const FilterRounds& rounds) {
  std::int32_t estimate = 0;
  double met = 0.0;
  const double k = static_cast<double>(rounds.k);
  const std::vector<FilterJobs> launches = schedule_filter(rounds);
  for (const FilterJobs& jobs : launches) {
    if (!jobs.ends_round) continue;
    const double before = met;
    met = static_cast<double>(jobs.fill || !rounds.symmetric
                                  ? jobs.end_delta
                                  : 2 * jobs.end_delta - 1);
    if (estimate > 0)
      CHECK(estimate * (met - before) / before <=
            std::max(2.0 * k, 2.0 * estimate));
    estimate = jobs.estimate_rank;
    const std::int64_t rank = estimated_rank(
        rounds.k, met / static_cast<double>(rounds.num_blocks), rounds.risk);
    CHECK(estimate == (rank < rounds.k ? rank : 0));
    CHECK_FALSE((estimate > 0 && jobs.reranks));
  }
  CHECK(launches.back().estimate_rank == 0);
  CHECK(met == static_cast<double>(rounds.num_blocks));
}

}  // namespace

TEST_CASE("a schedule yields its launches in order, and marks the last one") {
  FilterRounds rounds;
  rounds.num_blocks = 235;
  rounds.num_slabs = 470;
  rounds.depth = 320;
  rounds.chunk_size = 16384;
  rounds.multiprocessors = 132;
  const std::vector<FilterJobs> launches = schedule_filter(rounds);
  REQUIRE(launches.size() > 2);
  fsknn::cuda::KnownSchedule schedule(launches);
  std::size_t count = 0;
  while (const FilterJobs* jobs = schedule.next()) {
    REQUIRE(count < launches.size());
    CHECK(jobs->first_delta == launches[count].first_delta);
    CHECK(jobs->first_job == launches[count].first_job);
    CHECK(jobs->end_job == launches[count].end_job);
    ++count;
    CHECK(jobs->ends_schedule == (count == launches.size()));
  }
  CHECK(count == launches.size());
  CHECK(schedule.next() == nullptr);
  CHECK(fsknn::cuda::KnownSchedule({}).next() == nullptr);
}

TEST_CASE("each pair of the filter's blocks is met once over all devices") {
  for (const std::int64_t n : {4096, 24158, 60000})
    for (const std::int64_t chunk : {64, 300, 8192})
      for (const int devices : {1, 2, 3, 4}) {
        // Lists of more neighbours start with more blocks.
        const std::int64_t k = devices == 1 ? 20 : 512 * (devices - 1);
        const FilterBlocks blocks(n);
        // Counts how often half a block of rows meets a block of columns, for
        // the rows' lists.
        std::map<std::pair<std::int64_t, std::int64_t>, int> met;
        std::vector<std::int64_t> rounds_of_first;
        std::int64_t end_slab = 0;
        for (int device = 0; device < devices; ++device) {
          FilterRounds rounds;
          rounds.num_blocks = blocks.count;
          rounds.first_slab = 2 * first_block_of(blocks, device, devices);
          CHECK(rounds.first_slab == end_slab);
          end_slab = 2 * first_block_of(blocks, device + 1, devices);
          rounds.num_slabs = end_slab - rounds.first_slab;
          rounds.depth = 64;
          rounds.fill_blocks = fill_blocks_for(n, k);
          CHECK(rounds.fill_blocks % 2 == 1);
          CHECK(rounds.fill_blocks * (n / blocks.count) > k);
          CHECK(rounds.fill_blocks * kFilterBlock <= candidates_for(k));
          rounds.chunk_size = chunk;
          rounds.multiprocessors = device == 1 ? 20 : 132;
          // Estimated thresholds make rounds longer.
          rounds.k = k;
          rounds.risk = chunk == 300 ? 1e-4 : chunk == 64 ? 0.5 : 0.0;
          std::int64_t first_delta = 0, next_job = 0;
          std::vector<std::int64_t> ends;
          for (const FilterJobs& jobs : schedule_filter(rounds)) {
            CHECK(jobs.first_delta == first_delta);
            CHECK(jobs.first_job == next_job);
            CHECK(jobs.fill == (first_delta == 0));
            CHECK(jobs.symmetric == !jobs.fill);
            // What the cut after them is told.
            CHECK(jobs.all_valid == !jobs.fill);
            CHECK(jobs.filled ==
                  (jobs.fill ? rounds.fill_blocks * kFilterBlock : 0));
            CHECK(jobs.first_job % 2 == 0);
            CHECK(jobs.end_job % 2 == 0);
            CHECK(jobs.span * kFilterBlock < chunk + kFilterBlock);
            next_job = jobs.ends_round ? 0 : jobs.end_job;
            if (jobs.ends_round) {
              first_delta =
                  jobs.fill ? rounds.fill_blocks / 2 + 1 : jobs.end_delta;
              ends.push_back(first_delta);
            }
            for (std::int64_t job = jobs.first_job; job < jobs.end_job; ++job) {
              const std::int64_t slab = jobs.first_slab + job % jobs.num_slabs;
              const std::int64_t from =
                  jobs.first_delta + job / jobs.num_slabs * jobs.span;
              for (std::int64_t delta = from;
                   delta < std::min(from + jobs.span, jobs.end_delta);
                   ++delta) {
                const std::int64_t a = slab / 2;
                const std::int64_t b = (a + delta + jobs.shift) % blocks.count;
                ++met[{a, b}];
                if (jobs.symmetric) ++met[{b, a}];
              }
            }
          }
          // The rounds of all devices end at the same blocks.
          if (device == 0) rounds_of_first = ends;
          CHECK(ends == rounds_of_first);
          if (rounds.risk > 0.0) check_guesses(rounds);
        }
        CHECK(end_slab == 2 * blocks.count);
        CHECK(static_cast<std::int64_t>(met.size()) ==
              blocks.count * blocks.count);
        CHECK(std::all_of(met.begin(), met.end(),
                          [](const auto& pair) { return pair.second == 2; }));
      }
}

TEST_CASE("lists are reranked before the last rounds, and not after them") {
  for (const std::int64_t fill_blocks : {0, 1, 3})
    for (const std::int64_t slabs : {2, 190, 40000})
      for (const int reranked : {0, 1, 3, 100}) {
        FilterRounds rounds;
        rounds.num_blocks = 95;
        rounds.num_slabs = slabs;
        rounds.symmetric = fill_blocks > 0;
        rounds.fill_blocks = fill_blocks;
        rounds.depth = 320;
        rounds.chunk_size = 4096;
        rounds.multiprocessors = 132;
        rounds.reranked_rounds = reranked;
        std::vector<bool> ends;
        for (const FilterJobs& jobs : schedule_filter(rounds)) {
          CHECK((jobs.ends_round || !jobs.reranks));
          if (jobs.ends_round) ends.push_back(jobs.reranks);
        }
        const std::int64_t all = static_cast<std::int64_t>(ends.size());
        CHECK(std::count(ends.begin(), ends.end(), true) ==
              std::min<std::int64_t>(reranked, all - 1));
        CHECK_FALSE(ends.back());
        CHECK(std::is_sorted(ends.begin(), ends.end() - 1));
      }
}

TEST_CASE("a estimate leaves a neighbour out as seldom as asked for") {
  // The probability that `rank` or more of the k nearest are in a part of all
  // points, by direct summation.
  const auto tail = [](std::int64_t k, double met, std::int64_t rank) {
    double sum = 0.0;
    for (std::int64_t j = rank; j <= k; ++j) {
      double term = 1.0;
      for (std::int64_t i = 0; i < j; ++i)
        term *= met * static_cast<double>(k - i) / static_cast<double>(j - i);
      for (std::int64_t i = j; i < k; ++i) term *= 1.0 - met;
      sum += term;
    }
    return sum;
  };
  for (const std::int64_t k : {1, 2, 5, 20, 32, 100})
    for (const double met : {1e-4, 0.003, 0.1, 0.5, 0.65, 0.99})
      for (const double risk : {1e-7, 2e-4, 0.5}) {
        const std::int64_t rank = estimated_rank(k, met, risk);
        CHECK(rank >= 1);
        CHECK(rank <= k);
        if (rank < k) CHECK(tail(k, met, rank) <= risk * (1 + 1e-9));
        if (rank > 1) CHECK(tail(k, met, rank - 1) > risk * (1 - 1e-9));
      }
  CHECK(estimated_rank(20, 0.0, 0.5) == 20);
  CHECK(estimated_rank(20, 1.0, 0.5) == 20);
  CHECK(estimated_rank(2048, 1e-3, 2e-4) < 20);
  CHECK(estimated_rank(2048, 0.65, 2e-4) < 2048);
}

namespace {

/// Returns the most candidates that one of some rows' lists of k = 20 gets.
/// Points are in random order, and errors let `wider` times as many pass.
std::int64_t longest_list(const FilterRounds& rounds, double wider) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> distance;
  std::size_t longest = 0;
  for (int row = 0; row < 200; ++row) {
    std::vector<double> list;
    double limit = 1.0;
    for (const FilterJobs& jobs : schedule_filter(rounds)) {
      if (!jobs.ends_round) continue;
      const std::int64_t points =
          (jobs.end_delta - jobs.first_delta) * kFilterBlock;
      for (std::int64_t i = 0; i < points; ++i) {
        const double met = distance(random);
        if (met <= wider * limit) list.push_back(met);
      }
      longest = std::max(longest, list.size());
      std::sort(list.begin(), list.end());
      const std::int32_t rank =
          jobs.estimate_rank > 0 ? jobs.estimate_rank : 20;
      limit = std::min(limit, list[static_cast<std::size_t>(rank) - 1]);
      while (list.back() > wider * limit) list.pop_back();
    }
  }
  return static_cast<std::int64_t>(longest);
}

}  // namespace

TEST_CASE("few queries take few rounds, whose candidates fit their lists") {
  const std::int64_t k = 20;
  for (const std::int64_t n : {300, 20000, 100000})
    for (const std::int64_t num_queries : {1, 16, 256, 257}) {
      FilterRounds rounds;
      rounds.num_blocks = FilterBlocks(n).count;
      rounds.num_slabs = 2;
      rounds.symmetric = false;
      rounds.fill_blocks = fill_blocks_for(n, k);
      rounds.depth = 320;
      rounds.chunk_size = 16384;
      rounds.multiprocessors = 132;
      rounds.k = k;
      rounds.risk = fsknn::cuda::risk_of_estimates(num_queries, n, 320);
      const std::int32_t capacity = candidates_for_queries(k, num_queries);
      use_capacity(rounds, capacity);
      CHECK(rounds.fill_blocks * kFilterBlock <= capacity);
      CHECK(rounds.fill_blocks % 2 == 1);
      CHECK(rounds.room == (num_queries <= 256 ? 4 : 1));
      if (rounds.room > 1) CHECK(schedule_filter(rounds).size() <= 3);
      if (num_queries == 16 && n < 100000) continue;
      CHECK(longest_list(rounds, 3.0) <= capacity);
    }
  CHECK(candidates_for_queries(33, 1) == candidates_for(33));
}

TEST_CASE("rows with known thresholds meet every block of columns once") {
  for (const std::int64_t most_first : {INT64_MAX, std::int64_t{0}}) {
    FilterRounds rounds;
    rounds.num_blocks = 95;
    rounds.num_slabs = 6;
    rounds.symmetric = false;
    rounds.fill_blocks = 0;
    rounds.most_first = most_first;
    rounds.depth = 320;
    rounds.chunk_size = 4096;
    rounds.multiprocessors = 132;
    const std::vector<FilterJobs> launches = schedule_filter(rounds);
    CHECK(launches.front().end_delta == (most_first > 0 ? 2 : 1));
    std::map<std::pair<std::int64_t, std::int64_t>, int> met;
    for (const FilterJobs& jobs : launches) {
      CHECK_FALSE(jobs.fill);
      CHECK_FALSE(jobs.symmetric);
      for (std::int64_t job = jobs.first_job; job < jobs.end_job; ++job) {
        const std::int64_t slab = job % jobs.num_slabs;
        const std::int64_t from =
            jobs.first_delta + job / jobs.num_slabs * jobs.span;
        for (std::int64_t delta = from;
             delta < std::min(from + jobs.span, jobs.end_delta); ++delta)
          ++met[{slab, (slab / 2 + delta) % 95}];
      }
    }
    CHECK(met.size() == 6 * 95);
    CHECK(std::all_of(met.begin(), met.end(),
                      [](const auto& pair) { return pair.second == 1; }));
  }
}

TEST_CASE("what points are made of is held beside them") {
  const auto more = [](PlanInput in, double usable, double Plan::*bytes) {
    GpuFacts gpus = modern(8e10);
    gpus.bytes_limit = usable;
    const double before = plan_cuda(in, gpus).*bytes;
    in.rows_made = true;
    in.bytes_made_from = 5e6;
    return plan_cuda(in, gpus).*bytes - before;
  };
  for (PlanInput in : {input(20100, 1000, 10, 1), input(2000, 1000, 10, 2),
                       input(9000, 50, 10, 1, 0, 40)})
    CHECK(more(in, 0, &Plan::bytes_prepared) == 5e6);
  // With a filter and in panels; if there is no room for that, only in panels.
  PlanInput in = input(20100, 1000, 10, 1);
  in.unit_dot = true;
  CHECK(more(in, 120e6, &Plan::bytes_working) == 5e6);
  GpuFacts gpus = modern(8e10);
  gpus.bytes_limit = 120e6;
  CHECK(plan_cuda(in, gpus).filtered);
  CHECK(plan_cuda(in, gpus).streamed);
  gpus.bytes_limit = 60e6;
  in.bytes_made_from = 5e6;
  CHECK(plan_cuda(in, gpus).bytes_peak <= 60e6);
}

TEST_CASE("machine code runs on its major version, PTX on all later ones") {
  using fsknn::cuda::has_hopper_code;
  CHECK(has_hopper_code("75 80 90a ptx80"));
  CHECK(has_hopper_code("90a"));
  CHECK_FALSE(has_hopper_code("80 90 ptx90"));
  CHECK_FALSE(has_hopper_code(""));
  CHECK(runs_on("75 80 90a ptx80", 7, 5));
  CHECK(runs_on("80", 8, 6));
  CHECK_FALSE(runs_on("86", 8, 0));
  CHECK_FALSE(runs_on("75", 8, 0));
  CHECK(runs_on("90a", 9, 0));
  CHECK_FALSE(runs_on("90a", 10, 0));
  CHECK(runs_on("75 ptx75", 12, 0));
  // A build made on a machine with a Hopper GPU runs there and on newer GPUs.
  CHECK(runs_on("90a ptx90", 9, 0));
  CHECK(runs_on("90a ptx90", 12, 0));
  CHECK_FALSE(runs_on("90a ptx90", 8, 9));
  CHECK_FALSE(runs_on("ptx120", 9, 0));
  CHECK(runs_on("100f", 10, 3));
  CHECK_FALSE(runs_on("", 9, 0));
}

TEST_CASE("elementwise metrics are filtered on any GPU, in floats") {
  PlanInput in = input(100000, 295, 20, 1);
  in.filter = FilterKind::difference;
  const GpuFacts gpus = old(80e9);
  const fsknn::cuda::FilterShape shape = shape_in_panels(in, gpus);
  CHECK(shape.usable());
  CHECK(shape.rows.row_bytes == 296 * 4);
  CHECK(plan_cuda(in, gpus).filtered);
  in.filter = FilterKind::product;
  in.unit_dot = true;
  CHECK(!plan_cuda(in, gpus).filtered);
}

TEST_CASE("each filter has a number form, and the plan carries which") {
  for (const FilterKind filter : {FilterKind::product, FilterKind::difference,
                                  FilterKind::largest, FilterKind::overlap}) {
    PlanInput in = input(100000, 295, 20, 1);
    in.filter = filter;
    const fsknn::cuda::CudaPlan p = plan_cuda(in, modern(80e9));
    REQUIRE(p.filtered);
    CHECK(std::string(p.filter) ==
          fsknn::cuda::entry_of(p.shape.rows.form).name);
    // The last form that may replace it serves all points.
    fsknn::cuda::RowsInForm last = p.shape.rows;
    while (last.otherwise().form != fsknn::cuda::NumberForm::none)
      last = last.otherwise();
    CHECK((fsknn::cuda::entry_of(last.form).serves &
           fsknn::cuda::one_filter(filter)) != 0);
    // Small whole numbers may be codes; for other points the row is as long as
    // its replacement.
    const bool codes = p.shape.rows.form == fsknn::cuda::NumberForm::code;
    CHECK(codes ==
          (filter == FilterKind::difference || filter == FilterKind::overlap));
    const auto rows = codes ? p.shape.rows.otherwise() : p.shape.rows;
    const auto& entry = fsknn::cuda::entry_of(rows.form);
    CHECK(rows.depth % entry.step == 0);
    CHECK(rows.depth >= 295);
    const std::int64_t own = rows.depth * entry.bytes * rows.sides;
    CHECK(rows.row_bytes == std::max(own, last.row_bytes));
    CHECK(p.shape.rows.slot_bytes() == rows.slot_bytes());
    // A device that lacks what the form needs does not get it.
    GpuFacts gpus = modern(80e9);
    gpus.shared_bytes = entry.shared_bytes - 1;
    CHECK_FALSE(plan_cuda(in, gpus).filtered);
    in.num_features = entry.most_features;
    CHECK(shape_in_panels(in, modern(80e9)).usable());
    ++in.num_features;
    CHECK_FALSE(shape_in_panels(in, modern(80e9)).usable());
  }
}

TEST_CASE("rows in a form are as long as what the kernels read") {
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  const RowsInForm unit(NumberForm::half, true, 295);
  CHECK(unit.depth == 320);
  CHECK(unit.row_bytes == 640);
  CHECK(unit.slot_bytes() == 648);
  CHECK(unit.work == 320);
  // Three parts of the norm, and the factors of the other side's parts.
  CHECK(RowsInForm(NumberForm::half, true, 320).depth == 320);
  const RowsInForm raw(NumberForm::half, false, 320);
  CHECK(raw.depth == 384);
  CHECK(raw.row_bytes == 2 * 2 * 384);
  const RowsInForm floats(NumberForm::single, false, 295);
  CHECK(floats.depth == 296);
  CHECK(floats.row_bytes == 296 * 4);
  CHECK(floats.slot_bytes() == 296 * 4 + 12);
  CHECK(floats.work == 16 * 296);
  CHECK(floats.bytes_sums == 0);
}

TEST_CASE("rows of length 1 may be bytes") {
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  gpus.most_capability = 90;
  PlanInput in = input(1000000, 295, 20, 1);
  in.unit_dot = true;
  // Rows of 0 and 1 become codes, unless other bits are requested.
  const auto form = [&] {
    const RowsInForm rows = shape_held(in, gpus).rows;
    CHECK((rows.form == NumberForm::code) ==
          (in.asked.bits == 0 && in.unit_dot));
    if (rows.form != NumberForm::code) return rows.form;
    CHECK(rows.otherwise().form == rows.instead);
    CHECK(rows.otherwise().unit);
    return rows.instead;
  };
  CHECK(form() == NumberForm::byte);
  // There are too few points, unless bytes are requested.
  in.num_points = 80000;
  CHECK(form() == NumberForm::half);
  in.asked.bits = 8;
  CHECK(form() == NumberForm::byte);
  in.asked.bits = 0;
  in.num_points = 1000000;
  // The same in panels and by groups.
  CHECK(shape_in_panels(in, gpus).rows.instead == NumberForm::half);
  in.asked.bits = 16;
  CHECK(form() == NumberForm::half);
  in.asked.bits = 8;
  CHECK(shape_held(in, gpus).forced);
  in.asked.bits = 0;
  CHECK_FALSE(shape_held(in, gpus).forced);
  in.unit_dot = false;
  CHECK(form() == NumberForm::half);
  in.unit_dot = true;
  in.num_features = 16385;
  CHECK(form() == NumberForm::half);
  // Two sides, whose last features hold their errors, and room for halves.
  const RowsInForm rows(NumberForm::byte, true, 295);
  CHECK(rows.depth == 320);
  CHECK(rows.row_bytes == 640);
  CHECK(rows.work == 160);
  CHECK(rows.otherwise().form == NumberForm::half);
  CHECK(rows.otherwise().row_bytes <= rows.row_bytes);
  CHECK(rows.otherwise().otherwise().form == NumberForm::none);
  const RowsInForm few(NumberForm::byte, true, 33);
  CHECK(few.depth == 64);
  CHECK(few.row_bytes == 128);
}

TEST_CASE("bytes are for every device with tensor cores for them") {
  using fsknn::cuda::byte_candidate_cost;
  using fsknn::cuda::kByWarps;
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  PlanInput in = input(1000000, 295, 20, 1);
  in.unit_dot = true;
  const auto shape = [&](int least, int most) {
    gpus.capability = least;
    gpus.most_capability = most;
    return shape_held(in, gpus);
  };
  // For rows without two values each.
  const auto form = [&](int least, int most) {
    const RowsInForm rows = shape(least, most).rows;
    return rows.form == NumberForm::code ? rows.instead : rows.form;
  };
  CHECK(form(90, 90) == NumberForm::byte);
  const double cost = byte_candidate_cost(20);
  CHECK(shape(90, 90).candidate_cost == cost);
  for (const int capability : {75, 80, 86, 89, 120}) {
    CHECK(form(capability, capability) == NumberForm::byte);
    CHECK(shape(capability, capability).candidate_cost == kByWarps * cost);
  }
  // One of them multiplies by warps, or Hopper has the code of other GPUs.
  CHECK(shape(89, 90).candidate_cost == kByWarps * cost);
  gpus.hopper_code = false;
  CHECK(shape(90, 90).candidate_cost == kByWarps * cost);
  gpus.hopper_code = true;
  CHECK(form(70, 90) == NumberForm::none);
  // They can use bytes, but it is not known whether that pays.
  for (const int capability : {100, 103, 110}) {
    CHECK(form(capability, capability) == NumberForm::half);
    CHECK(form(80, capability) == NumberForm::half);
    CHECK(byte_candidate_cost(gpus, 20) == HUGE_VAL);
  }
  in.asked.bits = 8;
  CHECK(form(100, 100) == NumberForm::byte);
  // A row is rotated in shared memory.
  gpus.shared_bytes = 65536;
  in.num_features = 7800;
  CHECK(form(75, 75) == NumberForm::byte);
  in.num_features = 8192;
  CHECK(form(75, 75) == NumberForm::half);
  gpus.shared_bytes = 101376;
  in.num_features = 12400;
  CHECK(form(86, 86) == NumberForm::byte);
  in.num_features = 12600;
  CHECK(form(86, 86) == NumberForm::half);
  gpus.shared_bytes = 166912;
  in.num_features = 16384;
  CHECK(form(80, 80) == NumberForm::byte);
  // With more features sums of bytes might overflow 32 bits.
  for (const std::int64_t features : {16385, 133152, 140000}) {
    in.num_features = features;
    CHECK(form(80, 80) == NumberForm::half);
  }
}

TEST_CASE("rows of 0 and 1 are bits where tensor cores count them") {
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  PlanInput in = input(100000, 1024, 20, 1);
  in.filter = fsknn::FilterKind::bits;
  const auto form = [&] { return shape_in_panels(in, gpus).rows.form; };
  for (const int capability : {80, 90, 100}) {
    gpus.capability = capability;
    CHECK(form() == NumberForm::bit);
  }
  gpus.capability = 75;
  CHECK(form() == NumberForm::single);
  gpus.capability = 80;
  in.num_features = 524288;
  CHECK(form() == NumberForm::bit);
  in.num_features = 524289;
  CHECK(form() == NumberForm::none);
  // 16 features take the place of a half, in tiles of 64 of these.
  const RowsInForm rows(NumberForm::bit, false, 1024);
  CHECK(rows.depth == 64);
  CHECK(rows.row_bytes == 128);
  CHECK(rows.floats_a_slot == 1);
  CHECK(RowsInForm(NumberForm::bit, false, 1025).depth == 128);
  CHECK(rows.otherwise().form == NumberForm::none);
  CHECK(fsknn::cuda::bits_of(NumberForm::bit) == 1);
  CHECK(fsknn::cuda::bits_of(NumberForm::byte) == 8);
  CHECK(fsknn::cuda::bits_of(NumberForm::half) == 16);
  CHECK(fsknn::cuda::bits_of(NumberForm::single) == 32);
  CHECK(fsknn::cuda::bits_of(NumberForm::none) == 0);
}

TEST_CASE("small whole numbers may be codes, held or in panels") {
  using fsknn::cuda::depth_of_codes;
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  PlanInput in = input(100000, 1000, 20, 1);
  for (const FilterKind kind : {FilterKind::overlap, FilterKind::difference}) {
    in.filter = kind;
    CHECK(shape_held(in, gpus).rows.form == NumberForm::code);
    // The same in panels and by groups.
    CHECK(shape_in_panels(in, gpus).rows.form == NumberForm::code);
    in.num_features = 32768;
    CHECK(shape_held(in, gpus).rows.form == NumberForm::code);
    ++in.num_features;
    CHECK(shape_held(in, gpus).rows.form != NumberForm::code);
    in.num_features = 1000;
    gpus.capability = 75;
    CHECK(shape_held(in, gpus).rows.form == NumberForm::single);
    gpus.capability = 90;
  }
  for (const FilterKind kind : {FilterKind::none, FilterKind::largest,
                                FilterKind::product, FilterKind::bits}) {
    in.filter = kind;
    CHECK(shape_held(in, gpus).rows.form != NumberForm::code);
  }
  // For 0 and 1: Euclidean distances, and graphs by correlations and cosine.
  in.filter = FilterKind::product;
  in.squares = true;
  CHECK(shape_held(in, gpus).rows.form == NumberForm::code);
  CHECK(shape_held(in, gpus).rows.otherwise().form == NumberForm::half);
  CHECK_FALSE(shape_held(in, gpus).rows.otherwise().unit);
  in.squares = false;
  CHECK(shape_held(in, gpus).rows.form == NumberForm::half);
  in.unit_dot = true;
  in.num_queries = 5000;
  CHECK(shape_held(in, gpus).rows.form != NumberForm::code);
  in.num_queries = 0;
  const RowsInForm unit = shape_held(in, gpus).rows;
  CHECK(unit.form == NumberForm::code);
  CHECK(unit.unit);
  CHECK(std::string(unit.words()).find("bits") != std::string::npos);
  for (const std::int64_t features : {1, 8, 31, 33, 295, 1000, 32768}) {
    const RowsInForm codes = RowsInForm::codes(features, NumberForm::single);
    const RowsInForm floats = codes.otherwise();
    CAPTURE(features);
    CHECK(floats.form == NumberForm::single);
    CHECK(codes.row_bytes >= floats.row_bytes);
    CHECK(codes.floats_a_slot >= floats.floats_a_slot);
    CHECK(codes.row_bytes % 16 == 0);
    const int most = codes.most_code_bits();
    CHECK(most >= 1);
    CHECK(most * features <= fsknn::cuda::kMostCommon);
    for (int bits = 1; bits <= most; ++bits) {
      CHECK(2 * depth_of_codes(features, bits) <= codes.row_bytes);
      CHECK(16 * depth_of_codes(features, bits) >= bits * features);
    }
  }
  CHECK(RowsInForm::codes(32768, NumberForm::single).most_code_bits() == 32);
  CHECK(depth_of_codes(1000, 2) == 128);
  CHECK(fsknn::cuda::bits_of(NumberForm::code) == 1);
}

TEST_CASE("differences may be of whole numbers, where a GPU is made for them") {
  using fsknn::FilterKind;
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  gpus.capability = gpus.most_capability = 90;
  PlanInput in = input(100000, 295, 20, 1);
  const auto form = [&](FilterKind filter, bool held = true) {
    in.filter = filter;
    // For points that are not small whole numbers.
    const RowsInForm rows =
        (held ? shape_held(in, gpus) : shape_in_panels(in, gpus)).rows;
    return rows.form == NumberForm::code ? rows.otherwise().form : rows.form;
  };
  for (const FilterKind sum : {FilterKind::difference, FilterKind::overlap}) {
    CHECK(form(sum) == NumberForm::byte_difference);
    in.asked.bits = 16;
    CHECK(form(sum) == NumberForm::word_difference);
    CHECK(shape_held(in, gpus).forced);
    in.asked.bits = 32;
    CHECK(form(sum) == NumberForm::single);
    in.asked.bits = 0;
    CHECK_FALSE(shape_held(in, gpus).forced);
    // The same in panels and by groups.
    CHECK(form(sum, false) == NumberForm::byte_difference);
  }
  CHECK(form(FilterKind::largest) == NumberForm::word_difference);
  CHECK(form(FilterKind::largest, false) == NumberForm::word_difference);
  in.asked.bits = 8;
  CHECK(form(FilterKind::largest) == NumberForm::word_difference);
  CHECK(form(FilterKind::product) == NumberForm::half);
  CHECK(form(FilterKind::bits) == NumberForm::bit);
  // There are too few points, unless bits are requested; also for queries.
  in.num_points = 8000;
  CHECK(form(FilterKind::difference) == NumberForm::byte_difference);
  in.asked.bits = 0;
  CHECK(form(FilterKind::difference) == NumberForm::single);
  in.num_points = 1000000;
  in.num_queries = 1000;
  CHECK(form(FilterKind::difference) == NumberForm::byte_difference);
  in.num_queries = 300;
  in.num_features = 99;
  CHECK(form(FilterKind::difference) == NumberForm::single);
  in.num_queries = 0;
  in.num_features = 32769;
  CHECK(form(FilterKind::difference) == NumberForm::none);
  in.num_features = 32768;
  CHECK(form(FilterKind::difference) == NumberForm::byte_difference);
  in.asked.bits = 16;
  gpus.capability = 80;
  CHECK(form(FilterKind::difference) == NumberForm::single);
  CHECK(form(FilterKind::largest) == NumberForm::single);
  in.asked.bits = 0;
  CHECK(form(FilterKind::difference) == NumberForm::byte_difference);
  gpus.capability = 75;
  CHECK(form(FilterKind::difference) == NumberForm::single);
  // Rows consist of pieces of 16 bytes, with room for the form that may replace
  // them.
  const RowsInForm bytes(NumberForm::byte_difference, false, 295);
  CHECK(bytes.depth == 304);
  const RowsInForm words = bytes.otherwise();
  CHECK(words.form == NumberForm::word_difference);
  CHECK(words.depth == 296);
  const RowsInForm floats = words.otherwise();
  CHECK(floats.form == NumberForm::single);
  CHECK(floats.depth == 296);
  CHECK(floats.otherwise().form == NumberForm::none);
  for (const std::int64_t d : {1, 7, 16, 295, 32768}) {
    const RowsInForm row(NumberForm::byte_difference, false, d);
    CHECK(row.slot_bytes() >= row.otherwise().slot_bytes());
    CHECK(row.slot_bytes() >= row.otherwise().otherwise().slot_bytes());
  }
  CHECK(fsknn::cuda::bits_of(NumberForm::byte_difference) == 8);
  CHECK(fsknn::cuda::bits_of(NumberForm::word_difference) == 16);
}

TEST_CASE("a metric without a filter is planned without, whatever is asked") {
  for (const std::int64_t queries : {0, 5000, 100000})
    for (const int devices : {1, 4})
      for (const double free : {80e9, 200e6})
        for (const bool unit : {true, false}) {
          PlanInput in = input(100000, 295, 20, devices, 0, queries);
          in.filter = FilterKind::none;
          in.unit_dot = unit;
          CHECK_FALSE(shape_in_panels(in, modern(free)).usable());
          const fsknn::cuda::CudaPlan p = plan_cuda(in, modern(free));
          CHECK_FALSE(p.filtered);
          CHECK(p.shape.rows.form == fsknn::cuda::NumberForm::none);
          CHECK(std::string(p.filter).empty());
          CHECK(p.bytes_filter == 0);
          CHECK(p.streamed == (free < 1e9));
          check_sound(p, devices);
        }
}

TEST_CASE("an accumulation or a filter that nobody knows is refused") {
  for (const fsknn::MetricEntry& metric : fsknn::all_metrics()) {
    INFO(metric.name);
    CHECK_NOTHROW(check_metric(metric));
    fsknn::MetricEntry other = metric;
    other.filter = FilterKind::none;
    CHECK_NOTHROW(check_metric(other));
    other.accumulation = static_cast<fsknn::Accumulation>(99);
    CHECK_THROWS_AS(check_metric(other), std::logic_error);
    other = metric;
    other.filter = static_cast<FilterKind>(99);
    CHECK_THROWS_AS(check_metric(other), std::logic_error);
    other = metric;
    other.sign = static_cast<fsknn::Sign>(99);
    CHECK_THROWS_AS(check_metric(other), std::logic_error);
    other = metric;
    // A filter without a bound for the metric would silently drop neighbours.
    // Overlaps have two filters; the one for bits checks that rows are 0 and 1.
    const auto bound = [](FilterKind filter) {
      return filter == FilterKind::bits ? FilterKind::overlap : filter;
    };
    for (const FilterKind filter :
         {FilterKind::product, FilterKind::difference, FilterKind::largest,
          FilterKind::overlap, FilterKind::bits, FilterKind::table}) {
      other.filter = filter;
      if (bound(metric.filter) == bound(filter))
        CHECK_NOTHROW(check_metric(other));
      else
        CHECK_THROWS_AS(check_metric(other), std::logic_error);
    }
  }
  PlanInput in = input(100000, 295, 20, 1);
  in.filter = static_cast<FilterKind>(99);
  CHECK_THROWS_AS(plan_cuda(in, modern(80e9)), std::logic_error);
}

TEST_CASE("counts of alleles are bits where tensor cores count them") {
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  GpuFacts gpus = modern(80e9);
  PlanInput in = input(100000, 1000, 20, 1);
  in.filter = fsknn::FilterKind::table;
  for (const int alleles : {1, 2}) {
    in.alleles = alleles;
    const NumberForm form =
        alleles == 1 ? NumberForm::allele : NumberForm::allele_pair;
    in.num_features = 1000;
    gpus.capability = 80;
    CHECK(shape_held(in, gpus).rows.form == form);
    CHECK(shape_in_panels(in, gpus).rows.form == form);
    gpus.capability = 75;
    CHECK(shape_held(in, gpus).rows.form == NumberForm::none);
    gpus.capability = 90;
    in.num_features = 524289;
    CHECK(shape_held(in, gpus).rows.form == NumberForm::none);
  }
  // In words of 32 samples. Rows and columns of pairs differ.
  for (const std::int64_t d : {1, 31, 256, 257, 1000, 524288}) {
    const RowsInForm one(NumberForm::allele, false, d);
    CHECK(one.depth == fsknn::cuda::depth_of_codes(d, 1));
    CHECK(one.row_bytes == 2 * one.depth);
    const RowsInForm two(NumberForm::allele_pair, false, d);
    CHECK(two.depth == fsknn::cuda::depth_of_codes(d, 4));
    CHECK(two.row_bytes == 4 * two.depth);
    CHECK(two.floats_a_slot == 6);
    CHECK(two.otherwise().form == NumberForm::none);
  }
}

TEST_CASE("rows of length 1 may be centred where there is room") {
  using fsknn::cuda::NumberForm;
  using fsknn::cuda::RowsInForm;
  const RowsInForm halves(NumberForm::half, true, 320);
  CHECK(halves.otherwise().form == NumberForm::none);
  CHECK(halves.slot_bytes() == 320 * 2 + 8);
  const RowsInForm roomy = halves.with_room_to_centre();
  CHECK(roomy.row_bytes == halves.row_bytes);
  const RowsInForm centred = roomy.otherwise();
  CHECK(centred.form == NumberForm::half);
  CHECK(centred.centred);
  CHECK(centred.unit);
  CHECK(centred.sides == 2);
  CHECK(centred.depth == 384);
  CHECK(roomy.slot_bytes() == centred.slot_bytes());
  CHECK(centred.otherwise().form == NumberForm::none);
  // The forms are bytes, halves, and centred halves.
  const RowsInForm bytes =
      RowsInForm(NumberForm::byte, true, 320).with_room_to_centre();
  CHECK(bytes.slot_bytes() == centred.slot_bytes());
  CHECK(bytes.otherwise().form == NumberForm::half);
  CHECK(!bytes.otherwise().centred);
  CHECK(bytes.otherwise().otherwise().centred);
  // The forms are bits, halves, and centred halves.
  const RowsInForm bits =
      RowsInForm::codes(320, NumberForm::half, true).with_room_to_centre();
  CHECK(bits.slot_bytes() == centred.slot_bytes() + 4);
  CHECK(bits.otherwise().form == NumberForm::half);
  CHECK(!bits.otherwise().centred);
  CHECK(bits.otherwise().otherwise().centred);
  // With the entries added to a row, a sum may need several ranges.
  CHECK(RowsInForm(NumberForm::half, true, 2048)
            .with_room_to_centre()
            .bytes_sums > 0);
  // No other forms have room to centre.
  for (const RowsInForm& other :
       {RowsInForm(NumberForm::half, false, 320),
        RowsInForm(NumberForm::bit, false, 320), RowsInForm()}) {
    const RowsInForm same = other.with_room_to_centre();
    CHECK(same.slot_bytes() == other.slot_bytes());
    CHECK(same.otherwise().form == NumberForm::none);
  }
}
