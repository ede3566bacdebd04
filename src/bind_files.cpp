// The core's functions for reading and writing files in R.

#include <algorithm>
#include <cstdlib>

#include "bind_common.hpp"
#include "core/base/crc32.hpp"
#include "core/files/output_file.hpp"

using namespace fsknn;

namespace {

/// Writes a number in gzip's byte order, little-endian.
void put_number(std::uint32_t number, unsigned char* at) {
  for (int byte = 0; byte < 4; ++byte)
    at[byte] = static_cast<unsigned char>(number >> (8 * byte));
}

}  // namespace

// gzip's checksum of the last `length` bytes in a list of raw vectors, as in a
// file. Empty if there are fewer bytes.
// [[Rcpp::export(rng = false)]]
Rcpp::RawVector cpp_crc32(Rcpp::List blocks, double length) {
  double before = -length;
  for (R_xlen_t i = 0; i < blocks.size(); ++i)
    before += static_cast<double>(Rf_xlength(blocks[i]));
  if (!(before >= 0)) return Rcpp::RawVector(0);
  std::uint32_t crc = 0;
  for (R_xlen_t i = 0; i < blocks.size(); ++i) {
    const R_xlen_t size = Rf_xlength(blocks[i]);
    const R_xlen_t skipped =
        static_cast<R_xlen_t>(std::min(before, static_cast<double>(size)));
    before -= static_cast<double>(skipped);
    crc = crc32(RAW(blocks[i]) + skipped, size - skipped, crc);
  }
  Rcpp::RawVector out(4);
  put_number(crc, RAW(out));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_open_output(std::string path) {
  return bind::with_files([&] {
    return Rcpp::List::create(
        Rcpp::_["output"] = Rcpp::XPtr<OutputFile>(new OutputFile(path), true));
  });
}

// deflated: the bytes compressed by zlib, to write as a member of a gzip file
// (RFC 1952); NULL: writes the bytes themselves.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_write_output(SEXP output, Rcpp::RawVector bytes, SEXP deflated) {
  return bind::with_files([&] {
    OutputFile& file = *Rcpp::XPtr<OutputFile>(output);
    if (Rf_isNull(deflated)) {
      file.write(RAW(bytes), bytes.size());
      return Rcpp::List();
    }
    // Omits zlib's header of two bytes and its trailer of four.
    const Rcpp::RawVector packed(deflated);
    const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    unsigned char end[8];
    put_number(crc32(RAW(bytes), bytes.size()), end);
    put_number(static_cast<std::uint32_t>(bytes.size()), end + 4);
    file.write(head, sizeof head);
    file.write(RAW(packed) + 2, packed.size() - 6);
    file.write(end, sizeof end);
    return Rcpp::List();
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_finish_output(SEXP output) {
  return bind::with_files([&] {
    Rcpp::XPtr<OutputFile>(output)->finish();
    return Rcpp::List();
  });
}

// An unfinished file does not get its name.
// [[Rcpp::export(rng = false)]]
void cpp_drop_output(SEXP output) { Rcpp::XPtr<OutputFile>(output).release(); }
