#include "core/files/bed_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace fsknn {
namespace {

// Bytes that are decoded at a time.
constexpr std::int64_t kCodesAtOnce = std::int64_t{1} << 16;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Copies of the first and of the second allele, by the code.
constexpr double kCopies[2][4] = {{2, kNone, 1, 0}, {0, kNone, 1, 2}};

}  // namespace

Allele counted_allele(const std::string& name) {
  if (name == "A1") return Allele::first;
  if (name == "A2") return Allele::second;
  throw std::invalid_argument("no such allele: " + name);
}

BedRows::BedRows(const std::string& path, std::int64_t num_snps,
                 std::int64_t num_samples, Allele counted)
    : file_(path),
      num_snps_(num_snps),
      num_samples_(num_samples),
      row_bytes_((num_samples + 3) / 4),
      counted_(counted) {
  unsigned char head[kBedHead];
  file_.read_at(0, head, kBedHead);
  if (std::memcmp(head, kBedBytes, kBedHead) != 0 ||
      file_.size() != kBedHead + num_snps * row_bytes_)
    throw FileFailure{path, "it has another head or length than it had", 0};
}

void BedRows::read(std::int64_t first, std::int64_t count, double* out,
                   std::int64_t stride) const {
  const double* const copies = kCopies[counted_ == Allele::first ? 0 : 1];
  const std::int64_t row_bytes = std::max<std::int64_t>(row_bytes_, 1);
  const std::int64_t at_once =
      std::min(count, std::max<std::int64_t>(1, kCodesAtOnce / row_bytes));
  std::vector<unsigned char> codes(
      static_cast<std::size_t>(at_once * row_bytes));
  for (std::int64_t r0 = 0; r0 < count; r0 += at_once) {
    const std::int64_t rows = std::min(at_once, count - r0);
    file_.read_at(kBedHead + (first + r0) * row_bytes_, codes.data(),
                  rows * row_bytes_);
    for (std::int64_t r = 0; r < rows; ++r) {
      const unsigned char* const of_row = codes.data() + r * row_bytes_;
      double* const row = out + (r0 + r) * stride;
      for (std::int64_t f = 0; f < num_samples_; ++f)
        row[f] = copies[of_row[f / 4] >> f % 4 * 2 & 3];
    }
    poll_after(static_cast<double>(rows * num_samples_));
  }
}

}  // namespace fsknn
