// What readers and writers of files in R need of the core.

#include <algorithm>

#include "bind_common.hpp"
#include "core/crc32.hpp"

using namespace fsknn;

// gzip's digest of the last `length` of the bytes in a list of raw vectors, as
// it stands in a file; nothing where there are fewer.
// [[Rcpp::export(rng = false)]]
Rcpp::RawVector cpp_crc32(Rcpp::List blocks, double length) {
  double before = -length;
  for (R_xlen_t i = 0; i < blocks.size(); ++i)
    before += static_cast<double>(Rf_xlength(blocks[i]));
  if (!(before >= 0)) return Rcpp::RawVector(0);
  std::uint32_t crc = 0;
  for (R_xlen_t i = 0; i < blocks.size(); ++i) {
    const R_xlen_t size = Rf_xlength(blocks[i]);
    const R_xlen_t skipped = static_cast<R_xlen_t>(
        std::min(before, static_cast<double>(size)));
    before -= static_cast<double>(skipped);
    crc = crc32(RAW(blocks[i]) + skipped, size - skipped, crc);
  }
  Rcpp::RawVector out(4);
  for (int byte = 0; byte < 4; ++byte)
    out[byte] = static_cast<Rbyte>(crc >> (8 * byte));
  return out;
}
