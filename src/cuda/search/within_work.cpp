#include "cuda/search/within_work.hpp"

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The number of copied pairs that a host thread processes at a time.
constexpr std::int64_t kPairsAPiece = std::int64_t{1} << 15;

}  // namespace

WithinWork::WithinWork(const Request& asked, const Within& within,
                       const PlacedPoints& of_rows,
                       const PlacedPoints& of_columns, int exponent)
    : PairsWork(asked, of_rows, of_columns, exponent) {
  bytes_besides =
      8.0 * static_cast<double>(rows.size() + (graph() ? 0 : columns.size())) +
      static_cast<double>(kMostFound) * sizeof(FoundPair);
  limits.reserve(rows.order.id.size());
  for (const std::int32_t id : rows.order.id)
    limits.push_back(within.limit(id));
  if (!within.either || graph()) return;
  column_limits.reserve(columns.order.id.size());
  for (const std::int32_t id : columns.order.id)
    column_limits.push_back(within.point_limit(id));
}

FoundPairs::FoundPairs(const WithinWork& work, const Stream& stream)
    : work_(work),
      limits_(work.rows.size()),
      column_limits_(static_cast<std::int64_t>(work.column_limits.size())),
      found_(kMostFound),
      count_(1),
      pieces_(1, kPieceBytes) {
  upload(limits_, work.limits.data(), limits_.size(), stream);
  view_.limits = limits_.data();
  if (work.graph()) {
    view_.column_limits = limits_.data();
  } else if (column_limits_.size() > 0) {
    upload(column_limits_, work.column_limits.data(), column_limits_.size(),
           stream);
    view_.column_limits = column_limits_.data();
  }
  view_.found = found_.data();
  view_.capacity = static_cast<std::int32_t>(kMostFound);
  view_.count = count_.data();
  stream.wait();
}

void FoundPairs::clear_count(const Stream& stream) {
  clear_from(count_, 0, stream);
}

std::int32_t FoundPairs::counted(const Stream& stream) {
  return downloaded(count_.data(), stream);
}

void FoundPairs::take(std::int32_t count, WithinCollector& collector,
                      WithinCollector::Taker& taker, const Stream& stream) {
  if (count == 0) return;
  CUDA_CHECK(
      cudaMemcpyAsync(pieces_[0], found_.data(),
                      static_cast<std::size_t>(count) * sizeof(FoundPair),
                      cudaMemcpyDeviceToHost, stream.get()));
  stream.wait();
  if (count <= kPairsAPiece) return hand_over(0, count, taker);
  run_pieces((count + kPairsAPiece - 1) / kPairsAPiece, work_.num_threads, {},
             [&] {
               return [&, own = WithinCollector::Taker(collector)](
                          std::int64_t piece) mutable {
                 const std::int64_t first = piece * kPairsAPiece;
                 const std::int64_t end =
                     std::min<std::int64_t>(count, first + kPairsAPiece);
                 hand_over(first, end, own);
               };
             });
}

void FoundPairs::hand_over(std::int64_t first, std::int64_t end,
                           WithinCollector::Taker& taker) {
  const std::int32_t* const row_ids = work_.rows.order.id.data();
  const std::int32_t* const column_ids = work_.columns.order.id.data();
  const FoundPair* const found = on_host();
  for (const FoundPair* p = found + first; p < found + end; ++p)
    taker.take(AnswerRow{row_ids[p->row]}, PointId{column_ids[p->column]},
               p->value);
}

}  // namespace cuda
}  // namespace fsknn
