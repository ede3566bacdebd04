#include "core/files/row_file.hpp"

#include <algorithm>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/contract/prepare.hpp"
#include "core/files/system.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"

namespace fsknn {
namespace {

// The number of rows per system call, which may name at most 1024.
constexpr std::int64_t kMostNamed = 512;

/// Skips the bytes that have been moved.
void advance(std::vector<iovec>& parts, std::size_t& from, std::size_t moved) {
  while (from < parts.size() && moved >= parts[from].iov_len)
    moved -= parts[from++].iov_len;
  if (moved == 0) return;
  parts[from].iov_base = static_cast<char*>(parts[from].iov_base) + moved;
  parts[from].iov_len -= moved;
}

}  // namespace

DiskMatrix::DiskMatrix(const std::string& folder, std::int64_t num_rows,
                       std::int64_t num_columns, std::int64_t strip_columns)
    : num_rows_(num_rows),
      num_columns_(num_columns),
      strip_columns_(strip_columns),
      file_(folder, bytes()) {}

std::int64_t DiskMatrix::width_of(std::int64_t strip) const {
  return std::min(strip_columns_, num_columns_ - strip * strip_columns_);
}

void DiskMatrix::move(Way way, std::int64_t strip, std::int64_t first,
                      std::int64_t count, double* rows,
                      std::int64_t stride) const {
  const std::int64_t width = width_of(strip);
  std::int64_t at = 8 * (strip * strip_columns_ * num_rows_ + first * width);
  std::vector<iovec> parts;
  for (std::int64_t r0 = 0; r0 < count; r0 += kMostNamed) {
    const std::int64_t r1 = std::min(count, r0 + kMostNamed);
    parts.clear();
    if (stride == width)
      parts.push_back({rows + r0 * stride,
                       static_cast<std::size_t>((r1 - r0) * width) * 8});
    else
      for (std::int64_t r = r0; r < r1; ++r)
        parts.push_back(
            {rows + r * stride, static_cast<std::size_t>(width) * 8});
    for (std::size_t from = 0; from < parts.size();) {
      const int left = static_cast<int>(parts.size() - from);
      const ssize_t moved =
          way == Way::out
              ? pwritev(file_.number(), parts.data() + from, left, at)
              : preadv(file_.number(), parts.data() + from, left, at);
      if (TemporaryFile::again(moved, way == Way::out)) continue;
      at += moved;
      advance(parts, from, static_cast<std::size_t>(moved));
    }
  }
}

void DiskMatrix::write_strip(std::int64_t strip, std::int64_t first,
                             std::int64_t count, double* rows,
                             std::int64_t stride) {
  move(Way::out, strip, first, count, rows, stride);
}

void DiskMatrix::write(std::int64_t first, std::int64_t count, double* rows,
                       std::int64_t stride) {
  for (std::int64_t s = 0; s < num_strips(); ++s)
    move(Way::out, s, first, count, rows + s * strip_columns_, stride);
}

void DiskMatrix::read(std::int64_t first, std::int64_t count, double* rows,
                      std::int64_t stride) const {
  for (std::int64_t s = 0; s < num_strips(); ++s)
    move(Way::in, s, first, count, rows + s * strip_columns_, stride);
}

RowFile::RowFile(const RowFileForm& form, const Request& request,
                 RowKernel kernel)
    : matrix_(form.folder, form.num_points, form.num_features,
              form.strip_features),
      request_(request),
      recipe_(recipe_of(request_, 0)),
      kernel_(kernel),
      counted_({true, form.levels}),
      fill_missing_(form.fill_missing),
      digests_(form.num_points, form.num_features) {}

/// row: unprocessed, with room for its padding.
void RowFile::rerank_row(std::int64_t point, double* row, RowScratch& scratch,
                         MissingFacts& facts) {
  const std::int64_t d = num_features(), padded = padded_features(d);
  digests_.take(point, row);
  if (fill_missing_) {
    const std::int64_t missing = fill_with_mean(row, d);
    facts.missing += missing;
    if (missing == d) {
      facts.empty.push_back(point);
      return;
    }
  }
  const bool varies = scan_row(row, d, point, counted_, facts.known);
  // Rows without a form are later left out, or are an error.
  if (recipe_.form == RowForm::raw ||
      !(varies || (recipe_.form == RowForm::unit && row[0] != 0.0)))
    return;
  clear_padding(row, d, padded);
  kernel_(recipe_, scratch, row, d, padded);
  if (!scratch.varies) facts.known.explained.push_back(point);
}

/// fetch(first, count, rows, stride) reads rows, which are then checked,
/// prepared and written.
template <class Fetch>
void RowFile::rerank(std::int64_t first, std::int64_t count, Progress* progress,
                     Fetch fetch) {
  const std::int64_t d = num_features(), padded = padded_features(d);
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (count + block_rows - 1) / block_rows;
  std::vector<MissingFacts> of_block(static_cast<std::size_t>(num_blocks));
  run_pieces(num_blocks, request_.num_threads, {progress, 0.0, 0.0}, [&] {
    return [&, rows = Buffer<double>(block_rows * padded),
            scratch = RowScratch()](std::int64_t b) mutable {
      const std::int64_t row0 = b * block_rows;
      const std::int64_t num_rows = std::min(block_rows, count - row0);
      fetch(row0, num_rows, rows.data(), padded);
      for (std::int64_t r = 0; r < num_rows; ++r)
        rerank_row(first + row0 + r, rows.data() + r * padded, scratch,
                   of_block[static_cast<std::size_t>(b)]);
      matrix_.write(first + row0, num_rows, rows.data(), padded);
    };
  });
  for (const MissingFacts& block : of_block) add_facts(facts_, block);
}

void RowFile::add(std::int64_t strip, std::int64_t first,
                  const RowSource& tile) {
  const std::int64_t count = tile.num_points();
  if (matrix_.num_strips() == 1) {
    rerank(
        first, count, nullptr,
        [&](std::int64_t row0, std::int64_t num_rows, double* rows,
            std::int64_t stride) { tile.read(row0, num_rows, rows, stride); });
    return;
  }
  const std::int64_t width = tile.num_features();
  const std::int64_t block_rows = rows_per_block(width);
  run_pieces(
      (count + block_rows - 1) / block_rows, request_.num_threads, {}, [&] {
        return [&, rows = Buffer<double>(block_rows * width)](
                   std::int64_t b) mutable {
          const std::int64_t row0 = b * block_rows;
          const std::int64_t num_rows = std::min(block_rows, count - row0);
          tile.read(row0, num_rows, rows.data(), width);
          matrix_.write_strip(strip, first + row0, num_rows, rows.data(),
                              width);
        };
      });
}

const MissingFacts& RowFile::finish(Progress* progress) {
  if (matrix_.num_strips() > 1)
    rerank(0, num_points(), progress,
           [&](std::int64_t row0, std::int64_t num_rows, double* rows,
               std::int64_t stride) {
             matrix_.read(row0, num_rows, rows, stride);
           });
  return facts_;
}

}  // namespace fsknn
