#include "cuda/exact/answer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "cuda/device/check.hpp"
#include "cuda/plan/pieces.hpp"

namespace fsknn {
namespace cuda {
namespace {

constexpr std::int64_t kParts = 16;
// Touching fresh memory is expensive: one more thread pays from this many bytes
// on.
constexpr double kBytesPerThread = 1 << 18;

template <class T>
void download(T* to, const T* from, std::int64_t count, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(to, from,
                             static_cast<std::size_t>(count) * sizeof(T),
                             cudaMemcpyDeviceToHost, stream));
}

/// Copies a range of columns of one row. Returns whether all distances are
/// finite.
bool copy_distances(const double* from, std::int64_t count, double* to) {
  bool finite = true;
  for (std::int64_t e = 0; e < count; ++e) {
    to[e] = from[e];
    finite &= is_in_range(from[e]);
  }
  return finite;
}

}  // namespace

/// The arguments of one call of write().
struct AnswerWriter::Job {
  const Lists& lists;
  const std::int64_t num_rows;
  const std::int32_t* ids;
  const CorrelationOf& from;
  cudaStream_t stream;
};

AnswerWriter::AnswerWriter(const Neighbours& out, std::int64_t most_rows,
                           std::int64_t k, int num_threads, bool may_be_short)
    : out_(out),
      k_(k),
      num_threads_(num_threads),
      shape_(most_rows, k, out.as_edges()),
      staged_(shape_.bytes_device()),
      pinned_(shape_.slots, kPieceBytes),
      may_be_short_(may_be_short) {}

/// No copy into the pinned slots may be in flight when they are freed.
void AnswerWriter::write(const Lists& lists, std::int64_t num_rows,
                         const std::int32_t* ids, const CorrelationOf& from,
                         const Stream& stream) {
  try {
    write_pieces(lists, num_rows, ids, from, stream);
  } catch (...) {
    cudaStreamSynchronize(stream.get());
    throw;
  }
}

void AnswerWriter::write_pieces(const Lists& lists, std::int64_t num_rows,
                                const std::int32_t* ids,
                                const CorrelationOf& from,
                                const Stream& stream) {
  stream.wait();
  const auto start = std::chrono::steady_clock::now();
  const Job job = {lists, num_rows, ids, from, stream.get()};
  const std::int64_t all = num_rows * k_;
  const std::int64_t pieces =
      out_.as_edges() ? (all + shape_.entries - 1) / shape_.entries
                      : (num_rows + shape_.rows - 1) / shape_.rows *
                            ((k_ + shape_.ranks - 1) / shape_.ranks);
  const int threads = static_cast<int>(std::min<double>(
      num_threads_, 1.0 + static_cast<double>(all) * AnswerShape::entry_bytes /
                              kBytesPerThread));
  PieceTeam team(kParts, threads, [&](std::int64_t piece, std::int64_t part) {
    copy_out(job, piece, part);
  });
  team.begin(pieces);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    if (piece >= shape_.slots) team.finish(piece - shape_.slots);
    send(job, piece);
    sent_[piece % shape_.slots].record(stream);
    if (piece == 0) continue;
    sent_[(piece - 1) % shape_.slots].wait();
    team.release(piece);
    poll();
  }
  if (pieces > 0) sent_[(pieces - 1) % shape_.slots].wait();
  team.release(pieces);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    team.finish(piece);
    poll();
  }
  seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
}

Slice AnswerWriter::slice(const Job& job, std::int64_t piece) {
  Slice s;
  s.lists = job.lists;
  s.transposed = !out_.as_edges();
  char* const slot = device_slot(piece);
  s.distance = distances(slot);
  s.index = indices(slot);
  s.correlation = correlations(slot);
  if (out_.as_edges()) {
    s.first_entry = piece * shape_.entries;
    s.size = std::min(shape_.entries, job.num_rows * k_ - s.first_entry);
    return s;
  }
  const std::int64_t across = (k_ + shape_.ranks - 1) / shape_.ranks;
  s.row0 = piece / across * shape_.rows;
  s.num_rows = std::min(shape_.rows, job.num_rows - s.row0);
  s.rank0 = {piece % across * shape_.ranks};
  s.num_ranks = std::min(shape_.ranks, k_ - s.rank0.value);
  s.size = s.num_rows * s.num_ranks;
  return s;
}

/// Starts the copy of a piece into its pinned slot.
void AnswerWriter::send(const Job& job, std::int64_t piece) {
  const Slice s = slice(job, piece);
  char* const host = pinned_[piece % shape_.slots];
  if (s.transposed) start_slice(s, job.stream);
  if (out_.correlation != nullptr) {
    start_correlations(s, job.from, job.stream);
    download(correlations(host), s.correlation, s.size, job.stream);
  }
  download(distances(host),
           s.transposed ? s.distance : job.lists.distance + s.first_entry,
           s.size, job.stream);
  download(indices(host),
           s.transposed ? s.index : job.lists.index + s.first_entry, s.size,
           job.stream);
}

void AnswerWriter::copy_out(const Job& job, std::int64_t piece,
                            std::int64_t part) {
  const Slice s = slice(job, piece);
  if (may_be_short_)
    copy_short(job, s, part, pinned_[piece % shape_.slots]);
  else if (s.transposed)
    copy_matrices(job, s, part, pinned_[piece % shape_.slots]);
  else
    copy_edges(job, s, part, pinned_[piece % shape_.slots]);
}

/// Copies some of the rows of a piece, with all their ranks.
void AnswerWriter::copy_matrices(const Job& job, const Slice& s,
                                 std::int64_t part, char* slot) {
  const std::int64_t first = s.num_rows * part / kParts;
  const std::int64_t end = s.num_rows * (part + 1) / kParts;
  const std::int32_t* ids = job.ids + s.row0;
  bool finite = true;
  for (std::int64_t rank = 0; rank < s.num_ranks; ++rank) {
    const std::int64_t from = rank * s.num_rows;
    const std::int64_t to = out_.at(AnswerRow{0}, Rank{s.rank0.value + rank});
    const double* distance = distances(slot) + from;
    const std::int32_t* index = indices(slot) + from;
    for (std::int64_t r = first; r < end; ++r) {
      out_.index[to + ids[r]] = index[r] + 1;
      out_.distance[to + ids[r]] = distance[r];
      finite &= is_in_range(distance[r]);
    }
    if (out_.correlation == nullptr) continue;
    const double* correlation = correlations(slot) + from;
    for (std::int64_t r = first; r < end; ++r)
      out_.correlation[to + ids[r]] = correlation[r];
  }
  if (!finite) throw RangeFailure();
}

/// Copies some of the entries of a piece, row by row.
void AnswerWriter::copy_edges(const Job& job, const Slice& s, std::int64_t part,
                              char* slot) {
  const std::int64_t end = s.size * (part + 1) / kParts;
  for (std::int64_t e = s.size * part / kParts; e < end;) {
    const std::int64_t entry = s.first_entry + e, rank = entry % k_;
    const std::int64_t count = std::min(k_ - rank, end - e);
    const std::int64_t to = out_.at(AnswerRow{job.ids[entry / k_]}, Rank{rank});
    if (!copy_distances(distances(slot) + e, count, out_.distance + to))
      throw RangeFailure();
    for (std::int64_t i = 0; i < count; ++i)
      out_.index[to + i] = indices(slot)[e + i] + 1;
    if (out_.correlation != nullptr)
      std::copy_n(correlations(slot) + e, count, out_.correlation + to);
    e += count;
  }
}

/// Copies some of the entries of a piece and marks those without a point as
/// missing.
void AnswerWriter::copy_short(const Job& job, const Slice& s, std::int64_t part,
                              char* slot) {
  const std::int64_t first = s.size * part / kParts;
  const std::int64_t end = s.size * (part + 1) / kParts;
  if (first == end) return;
  const std::int64_t entry = s.first_entry + first;
  std::int64_t row = s.transposed ? first % s.num_rows : entry / k_;
  std::int64_t rank =
      s.transposed ? s.rank0.value + first / s.num_rows : entry % k_;
  for (std::int64_t e = first; e < end; ++e) {
    const std::int64_t to =
        out_.at(AnswerRow{job.ids[s.row0 + row]}, Rank{rank});
    const bool there = indices(slot)[e] != kNoPoint;
    if (there && !is_in_range(distances(slot)[e])) throw RangeFailure();
    if (!there && rank + 1 == k_) ++rows_short_;
    out_.index[to] = there ? indices(slot)[e] + 1 : out_.missing_index;
    out_.distance[to] = there ? distances(slot)[e] : out_.missing_value;
    if (out_.correlation != nullptr)
      out_.correlation[to] = there ? correlations(slot)[e] : out_.missing_value;
    if (s.transposed && ++row == s.num_rows) {
      row = 0;
      ++rank;
    } else if (!s.transposed && ++rank == k_) {
      rank = 0;
      ++row;
    }
  }
}

}  // namespace cuda
}  // namespace fsknn
