#pragma once

// Genotypes in the .bed format of PLINK 1 (Purcell 2007; described at
// https://www.cog-genomics.org/plink/1.9/formats#bed): three bytes, then a code
// of 2 bits for each sample of SNP 1, then those of SNP 2, and so on. A byte
// has four samples, the first in its lowest bits. Each SNP begins a byte. The
// numbers of SNPs and samples are in other files.

#include <cstdint>
#include <string>

#include "core/files/durable.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

constexpr std::int64_t kBedHead = 3;  ///< bytes before the first code
/// The head of a file in the order of SNPs.
constexpr unsigned char kBedBytes[kBedHead] = {0x6c, 0x1b, 0x01};

/// The counted allele: the first (A1) or the second (A2) of the .bim file.
enum class Allele { first, second };

/// The allele of this name. Throws std::invalid_argument for an unknown one.
Allele counted_allele(const std::string& name);

/// The SNPs of such a file as rows, read where they are: copies of one allele
/// (0, 1, 2), or NaN.
class BedRows final : public RowSource {
 public:
  /// Throws FileFailure, also if the file has another head or length.
  BedRows(const std::string& path, std::int64_t num_snps,
          std::int64_t num_samples, Allele counted);

  std::int64_t num_points() const override { return num_snps_; }
  std::int64_t num_features() const override { return num_samples_; }
  /// Throws FileFailure.
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;
  bool on_disk() const override { return true; }

 private:
  const InputFile file_;
  const std::int64_t num_snps_, num_samples_, row_bytes_;
  const Allele counted_;
};

}  // namespace fsknn
