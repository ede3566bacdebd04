#include "cuda/filter/self_test.hpp"

#include <cstring>
#include <type_traits>

#include "cuda/backend.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/filter/byte_form.cuh"
#include "cuda/filter/byte_pairs.hpp"
#include "cuda/filter/half_pairs.hpp"
#include "cuda/filter/tiled_form.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// All sums, made once for all devices.
struct TestCases {
  static constexpr std::int64_t most_bytes =
      kMostBytes / ByteTile::step * ByteTile::step;
  TestProducts<std::int8_t> bytes{test_bytes, sum_of_bytes, most_bytes};
  TestProducts<std::uint16_t> bits{test_bits, sum_of_bits, kMostCommon / 16};
  /// The longest sum in one, and one of several ranges of features.
  TestProducts<std::uint16_t> halves{test_halves, sum_of_halves, kMostInOne};
  TestProducts<std::uint16_t> ranges{test_halves, sum_of_halves,
                                     2 * kMostInOne};
  std::vector<Operands> operands = test_operands();
};

// Computes the products of 16 rows and 8 columns by the instructions for warps,
// which some kernels use on Hopper too. In: rows [16 x words] and columns
// [8 x words], row-major; words: of 4 bytes, a multiple of 8. Out: sums
// [16 x 8]. Grid: 1. Block: a warp. Shared: none.
template <class Form>
__global__ void sum_by_warp(const unsigned* rows, const unsigned* columns,
                            std::int64_t words, typename Form::Number* sums) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, q = lane % 4;
  const unsigned* const upper = rows + g * words + q;
  const unsigned* const lower = upper + 8 * words;
  const unsigned* const column = columns + g * words + q;
  typename Form::Number sum[4] = {};
  for (std::int64_t w = 0; w < words; w += 8) {
    const unsigned a[4] = {upper[w], lower[w], upper[w + 4], lower[w + 4]};
    Form::add(sum, a, column[w], column[w + 4]);
  }
  for (int x = 0; x < 4; ++x)
    sums[(LanePlace::row(lane) + x / 2 * 8) * 8 + LanePlace::column(lane) +
         x % 2] = sum[x];
}

// In: operands [count]. Out: found [count]. Grid: x over operands. Block: any.
// Shared: none.
__global__ void compute_results(const Operands* operands, int count,
                                Results* found) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) found[i] = Results::of(operands[i]);
}

template <class Form, class Number>
bool warps_hold(const TestProducts<Number>& test, const Stream& stream) {
  static_assert(kTestRows == 16, "the rows of one instruction");
  using Sum = typename Form::Number;
  const std::int64_t size = kTestRows * test.rows.depth;
  DeviceBuffer<Number> rows(size), columns(size);
  DeviceBuffer<Sum> sums(kTestRows * 8);
  upload(rows, test.rows.numbers.data(), size, stream);
  upload(columns, test.columns.numbers.data(), size, stream);
  sum_by_warp<Form><<<1, 32, 0, stream.get()>>>(
      reinterpret_cast<const unsigned*>(rows.data()),
      reinterpret_cast<const unsigned*>(columns.data()),
      test.rows.depth * static_cast<std::int64_t>(sizeof(Number)) / 4,
      sums.data());
  CUDA_CHECK(cudaGetLastError());
  return test.hold(downloaded(sums.data(), sums.size(), stream), 8);
}

/// Rows in the layout of a filter, repeated in a block of slots.
template <class Rows>
class RepeatedRows {
  using Number = std::remove_pointer_t<decltype(Rows::tiles)>;

 public:
  template <class From>
  RepeatedRows(const TestRows<From>& from, const Stream& stream)
      : on_host_(static_cast<std::size_t>(kFilterBlock * from.depth)),
        on_device_(kFilterBlock * from.depth) {
    static_assert(sizeof(From) == sizeof(Number), "the same bits");
    rows.depth = from.depth;
    rows.stride = kFilterBlock * from.depth;
    rows.tiles = on_host_.data();
    constexpr int piece = 16 / sizeof(Number);  // contiguous in any layout
    for (std::int64_t slot = 0; slot < kFilterBlock; ++slot)
      for (std::int64_t f = 0; f < from.depth; f += piece)
        std::memcpy(static_cast<void*>(rows.at(slot, f)),
                    from.row(static_cast<int>(slot % kTestRows)) + f, 16);
    rows.tiles = on_device_.data();
    upload(on_device_, on_host_.data(), on_device_.size(), stream);
  }
  Rows rows;

 private:
  std::vector<Number> on_host_;
  DeviceBuffer<Number> on_device_;
};

/// Computes the sums by the filter's own kernels, as a search does that fills
/// its lists. start(work, zeros): zeros has a float for each slot.
template <class Work, class Number, class Start>
bool filter_holds(const TestProducts<Number>& test, const Stream& stream,
                  Start start) {
  using Rows = decltype(Work::rows);
  const RepeatedRows<Rows> rows(test.rows, stream);
  const RepeatedRows<Rows> columns(test.columns, stream);
  const auto none = zeros<float>(kFilterBlock);
  const auto counts = zeros<std::int32_t>(kFilterBlock);
  auto thresholds = zeros<float>(kFilterBlock);
  auto lengths = zeros<std::int32_t>(kFilterBlock);
  DeviceBuffer<Candidate> entries(kFilterBlock * kFilterBlock);
  Work work;
  work.rows = rows.rows;
  work.columns = columns.rows;
  work.column_there = none.data();
  work.lists.entries = entries.data();
  work.lists.counts = lengths.data();
  work.lists.thresholds = thresholds.data();
  work.lists.num_slots = kFilterBlock;
  work.lists.capacity = static_cast<std::int32_t>(kFilterBlock);
  work.jobs.num_blocks = work.jobs.end_delta = 1;
  work.jobs.num_slabs = work.jobs.end_job = FilterTile::slabs;
  work.jobs.symmetric = false;
  work.jobs.fill = true;
  start(work, none.data());
  std::vector<float> found;
  for (const Candidate& entry :
       downloaded(entries.data(), entries.size(), stream))
    found.push_back(entry.similarity);
  return test.hold(found, kFilterBlock);
}

bool halves_hold(const TestProducts<std::uint16_t>& test,
                 const Stream& stream) {
  DeviceBuffer<float4> range_sums(
      bytes_feature_range_sums(current_device(), test.rows.depth) /
      static_cast<std::int64_t>(sizeof(float4)));
  return filter_holds<HalfWork>(
      test, stream, [&](HalfWork& work, const float*) {
        work.feature_range_sums = range_sums.data();
        start_half_filter(Sign::signed_value, work, stream.get());
      });
}

bool bytes_hold(const TestProducts<std::int8_t>& test, const Stream& stream) {
  return filter_holds<ByteWork>(
      test, stream, [&](ByteWork& work, const float*) {
        start_byte_filter(Sign::signed_value, work, stream.get());
      });
}

/// The closeness of rows whose own counts are 0 is the count of common bits.
bool bits_hold(const TestProducts<std::uint16_t>& test, const Stream& stream) {
  return filter_holds<HalfWork>(
      test, stream, [&](HalfWork& work, const float* no_counts) {
        work.row_numbers[0] = work.column_numbers[0] = no_counts;
        start_bit_pairs(BitSimilarity::difference, Sign::signed_value, work,
                        stream.get());
      });
}

/// Tests the current device.
Failed failed_here(const TestCases& cases, const Device& device) {
  const Stream stream;
  Failed failed;
  const auto count = static_cast<std::int64_t>(cases.operands.size());
  DeviceBuffer<Operands> operands(count);
  DeviceBuffer<Results> found(count);
  upload(operands, cases.operands.data(), count, stream);
  compute_results<<<static_cast<unsigned>(count / 256), 256, 0, stream.get()>>>(
      operands.data(), static_cast<int>(count), found.data());
  CUDA_CHECK(cudaGetLastError());
  compare_results(cases.operands, downloaded(found.data(), count, stream),
                  failed);

  // The plan gives older devices no such rows.
  const auto has = [&](NumberForm form) {
    const NumberFormEntry& entry = entry_of(form);
    return 10 * device.major + device.minor >= entry.least_capability &&
           device.shared_bytes >= entry.shared_bytes;
  };
  if (has(NumberForm::byte) && !(warps_hold<ByteForm>(cases.bytes, stream) &&
                                 bytes_hold(cases.bytes, stream)))
    failed.insert("byte_sums");
  if (has(NumberForm::bit) &&
      !(warps_hold<TiledForm<int>>(cases.bits, stream) &&
        bits_hold(cases.bits, stream)))
    failed.insert("bit_counts");
  if (has(NumberForm::half) &&
      !(warps_hold<TiledForm<float>>(cases.halves, stream) &&
        halves_hold(cases.halves, stream) && halves_hold(cases.ranges, stream)))
    failed.insert("half_sums");
  return failed;
}

}  // namespace

std::vector<SelfTest> self_test() {
  const std::vector<Device> all = devices();
  std::vector<SelfTest> tests(all.size());
  if (all.empty()) return tests;
  const TestCases cases;
  Workers workers(nullptr, 1);
  workers.run(static_cast<int>(all.size()), [&](int w) {
    const Device& device = all[static_cast<std::size_t>(w)];
    SelfTest& test = tests[static_cast<std::size_t>(w)];
    try {
      const DeviceGuard current(device.cuda_id);
      test.failed = failed_here(cases, device);
      test.finished = true;
    } catch (const Failure& e) {
      test.why_not = e.what();
    }
  });
  return tests;
}

}  // namespace cuda
}  // namespace fsknn
