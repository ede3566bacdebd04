// Handles rows of allele counts, for the metrics of tables of alleles
// (table_bound.hpp). Counts from 0 to `copies` become bits: for one copy the
// count itself, for two whether it is at least 1 (t) and at least 2 (u). A sum
// of products is then that of t t, t u, u t and u u, which tensor cores count
// as common bits, exactly: a row has the words t t u u, a column t u t u.

#include <stdexcept>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/bit_pairs.hpp"
#include "cuda/filter/half_pairs.hpp"
#include "cuda/filter/table_bound.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The numbers of slots, [6 x num_slots]: whether the slot has a point, then
/// the members of TableRow and of TableColumn.
struct TableValues {
  float *there, *row[2], *column[3];
  explicit TableValues(const FilterRows& of) : there(of.values) {
    for (int at = 0; at < 2; ++at) row[at] = there + (1 + at) * of.num_slots;
    for (int at = 0; at < 3; ++at) column[at] = there + (3 + at) * of.num_slots;
  }
};

// One warp handles a row. In: prepared rows; slots [count]. Out: their words, a
// half's 16 bits at a time; values [slots]; others: 1 if an entry is no count
// of alleles. Grid: x over rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    pack_alleles(const TableTerms terms, const PreparedRows from,
                 std::int64_t count, const std::int32_t* slots,
                 const HalfRows rows, const HalfRows columns,
                 const TableValues values, std::int64_t features, int* others) {
  constexpr unsigned whole_warp = 0xffffffffu;
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  const bool two = terms.copies > 1.0;
  const int words = two ? 4 : 1;
  bool other = false;
  for (std::int64_t word = 0; word < rows.depth / 2; word += words) {
    const std::int64_t f = word / words * kWarp + lane;
    const double x = f < features ? from.rows[row * from.padded + f] : 0.0;
    other |= !(x == 0.0 || x == 1.0 || (two && x == 2.0));
    const unsigned t = __ballot_sync(whole_warp, x >= 1.0);
    const unsigned u = __ballot_sync(whole_warp, x >= 2.0);
    if (lane >= words || word + lane >= rows.depth / 2) continue;
    const std::int64_t half = 2 * (word + lane);
    *reinterpret_cast<unsigned*>(rows.at(slot, half)) = lane < 2 ? t : u;
    if (two)
      *reinterpret_cast<unsigned*>(columns.at(slot, half)) =
          lane % 2 == 0 ? t : u;
  }
  if (other) *others = 1;
  if (lane > 0) return;
  const TableRow as_row = table_row(terms, from.sums[row]);
  const TableColumn as_column = table_column(terms, from.sums[row]);
  values.there[slot] = 1.0f;
  values.row[0][slot] = as_row.counted;
  values.row[1][slot] = as_row.weight;
  values.column[0][slot] = as_column.weight;
  values.column[1][slot] = as_column.counted;
  values.column[2][slot] = as_column.others;
}

class TableFilter final : public PairFilter {
 public:
  TableFilter(const MetricEntry& metric, const RowsInForm& rows)
      : PairFilter(rows), terms_(metric.table), others_(zeros<int>(1)) {
    if (!(terms_.samples > 0.0) ||
        (terms_.copies > 1.0) != (rows.form == NumberForm::allele_pair))
      throw std::logic_error("tables of other samples");
  }
  void start_rows(const PreparedRows& from, std::int64_t count,
                  const std::int32_t* slots, const FilterRows& to,
                  cudaStream_t stream) override {
    if (count == 0) return;
    pack_alleles<<<blocks_of_warps(count), kThreads, 0, stream>>>(
        terms_, from, count, slots, tiled_halves(to, rows_, 0),
        tiled_halves(to, rows_, rows_.sides - 1), TableValues(to),
        rows_.features, others_.data());
    CUDA_CHECK(cudaGetLastError());
  }
  void set_errors(Cut& cut, const FilterRows&, const FilterRows&,
                  const Stream& stream) override {
    // The caller has checked all values.
    if (downloaded(others_.data(), stream) != 0)
      throw std::logic_error("rows of allele counts have other values");
    cut.twice_error = 2.0 * error_of_table(terms_);
    cut.row_slack = cut.column_slack = nullptr;
  }
  SimilarityUnits units(const Cut&, const Stream&) override {
    return {1.0 / (unit_of_table(terms_) * kTableUnit), error_of_table(terms_),
            0.0};
  }
  void start(const FilterWork& work, cudaStream_t stream) override {
    const TableValues rows(work.rows), columns(work.columns);
    HalfWork bits = half_work(work, rows_);
    bits.column_there = columns.there;
    for (int at = 0; at < 3; ++at) bits.column_numbers[at] = columns.column[at];
    // A row has no third number, which is not used.
    for (int at = 0; at < 3; ++at) bits.row_numbers[at] = rows.row[at % 2];
    start_table_pairs(bits, stream);
  }

 private:
  const TableTerms terms_;
  DeviceBuffer<int> others_;
};

}  // namespace

std::unique_ptr<PairFilter> make_table_filter(const MetricEntry& metric,
                                              const RowsInForm& rows) {
  return std::unique_ptr<PairFilter>(new TableFilter(metric, rows));
}

}  // namespace cuda
}  // namespace fsknn
