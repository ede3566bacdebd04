#include "core/files/digest.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// The primes of XXH64, numbered as in its specification.
constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87u;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fu;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9u;
constexpr std::uint64_t kPrime4 = 0x85ebca77c2b2ae63u;
constexpr std::uint64_t kPrime5 = 0x27d4eb2f165667c5u;

std::uint64_t turn(std::uint64_t x, int by) {
  return (x << by) | (x >> (64 - by));
}

/// Reads little-endian numbers on every machine; compilers reduce this to one
/// load on little-endian ones.
template <int bytes>
std::uint64_t number_at(const unsigned char* at) {
  std::uint64_t x = 0;
  for (int i = 0; i < bytes; ++i)
    x |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return x;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
  return turn(lane + word * kPrime2, 31) * kPrime1;
}

std::uint64_t merged(std::uint64_t all, std::uint64_t lane) {
  return (all ^ mixed(0, lane)) * kPrime1 + kPrime4;
}

void mix_stripe(std::uint64_t* lanes, const unsigned char* at) {
  for (int lane = 0; lane < 4; ++lane)
    lanes[lane] =
        mixed(lanes[lane], number_at<8>(at + std::ptrdiff_t{8} * lane));
}

/// The bits of a number; all NaN have the same.
std::uint64_t bits_of(double x) {
  if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

void take_words(Digest& digest, const std::uint64_t* words,
                std::int64_t count) {
  digest.take(words, count * static_cast<std::int64_t>(sizeof *words));
}

}  // namespace

Digest::Digest(std::uint64_t seed)
    : seed_(seed),
      lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Digest::take(const void* bytes, std::int64_t size) {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  const std::int64_t held = static_cast<std::int64_t>(size_ % kStripe);
  size_ += static_cast<std::uint64_t>(size);
  if (held > 0) {
    const std::int64_t count = std::min(size, kStripe - held);
    std::copy_n(at, count, left_ + held);
    if (held + count < kStripe) return;
    mix_stripe(lanes_, left_);
    at += count;
    size -= count;
  }
  for (; size >= kStripe; at += kStripe, size -= kStripe)
    mix_stripe(lanes_, at);
  std::copy_n(at, size, left_);
}

std::uint64_t Digest::value() const {
  std::uint64_t all = seed_ + kPrime5;
  if (size_ >= kStripe) {
    all = turn(lanes_[0], 1) + turn(lanes_[1], 7) + turn(lanes_[2], 12) +
          turn(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) all = merged(all, lane);
  }
  all += size_;
  const unsigned char* at = left_;
  int left = static_cast<int>(size_ % kStripe);
  for (; left >= 8; at += 8, left -= 8)
    all = turn(all ^ mixed(0, number_at<8>(at)), 27) * kPrime1 + kPrime4;
  for (; left >= 4; at += 4, left -= 4)
    all = turn(all ^ number_at<4>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; left > 0; ++at, --left) all = turn(all ^ *at * kPrime5, 11) * kPrime1;
  all ^= all >> 33;
  all *= kPrime2;
  all ^= all >> 29;
  all *= kPrime3;
  return all ^ (all >> 32);
}

std::uint64_t digest_bytes(const void* bytes, std::int64_t size) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  Digest digest;
  const char* const first = static_cast<const char*>(bytes);
  for (std::int64_t done = 0; done < size; done += kAtOnce) {
    digest.take(first + done, std::min(kAtOnce, size - done));
    poll_after(0.2 * static_cast<double>(kAtOnce));
  }
  return digest.value();
}

RowDigests::RowDigests(std::int64_t num_points, std::int64_t num_features)
    : num_features_(num_features),
      of_row_(static_cast<std::size_t>(num_points)) {}

void RowDigests::take(std::int64_t point, const double* row) {
  constexpr std::int64_t kAtOnce = 512;
  std::uint64_t words[kAtOnce];
  Digest digest;
  for (std::int64_t f0 = 0; f0 < num_features_; f0 += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, num_features_ - f0);
    for (std::int64_t f = 0; f < count; ++f) words[f] = bits_of(row[f0 + f]);
    take_words(digest, words, count);
  }
  of_row_[static_cast<std::size_t>(point)] = digest.value();
}

std::string RowDigests::value() const {
  Digest all;
  const std::uint64_t shape[] = {of_row_.size(),
                                 static_cast<std::uint64_t>(num_features_)};
  take_words(all, shape, 2);
  take_words(all, of_row_.data(), static_cast<std::int64_t>(of_row_.size()));
  return hexadecimal(all.value());
}

std::string digest_source(const RowSource& source, int num_threads) {
  const std::int64_t n = source.num_points(), d = source.num_features();
  const std::int64_t block_rows = rows_per_block(d);
  const std::int64_t num_blocks = (n + block_rows - 1) / block_rows;
  RowDigests digests(n, d);
  const double operations = static_cast<double>(n) * static_cast<double>(d);
  run_pieces(num_blocks, useful_threads(num_threads, operations), {}, [&] {
    return
        [&, rows = Buffer<double>(block_rows * d)](std::int64_t block) mutable {
          const std::int64_t first = block * block_rows;
          const std::int64_t count = std::min(block_rows, n - first);
          source.read(first, count, rows.data(), d);
          for (std::int64_t r = 0; r < count; ++r)
            digests.take(first + r, rows.data() + r * d);
        };
  });
  return digests.value();
}

namespace {
constexpr char kDigits[] = "0123456789abcdef";
}

std::string hexadecimal(std::uint64_t digest) {
  std::string text(16, '0');
  for (int at = 15; at >= 0; --at, digest >>= 4)
    text[static_cast<std::size_t>(at)] = kDigits[digest & 15];
  return text;
}

std::uint64_t from_hexadecimal(const std::string& text) {
  std::uint64_t digest = 0;
  bool good = text.size() == 16;
  for (std::size_t at = 0; good && at < text.size(); ++at) {
    const char* const digit = std::find(kDigits, kDigits + 16, text[at]);
    good = digit != kDigits + 16;
    digest = digest << 4 | static_cast<std::uint64_t>(digit - kDigits);
  }
  if (!good) throw std::invalid_argument("a digest has 16 hexadecimal digits");
  return digest;
}

}  // namespace fsknn
