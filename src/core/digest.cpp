#include "core/digest.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/buffer.hpp"
#include "core/pieces.hpp"

namespace fsknn {
namespace {

std::uint64_t turn(std::uint64_t x, int by) {
  return (x << by) | (x >> (64 - by));
}

/// Four lanes of multiply, add and turn, as in xxHash (Collet 2012): a word at
/// a time, as fast as memory gives them.
class Digest {
 public:
  void take(const std::uint64_t* words, std::int64_t count) {
    std::int64_t at = 0;
    for (; at + 4 <= count; at += 4)
      for (int lane = 0; lane < 4; ++lane)
        lanes_[lane] = mixed(lanes_[lane], words[at + lane]);
    for (; at < count; ++at) lanes_[0] = mixed(lanes_[0], words[at]);
    size_ += static_cast<std::uint64_t>(count);
  }
  void take(std::uint64_t word) { take(&word, 1); }

  std::uint64_t value() const {
    std::uint64_t all = mixed(kSeed, size_);
    for (const std::uint64_t lane : lanes_) all = mixed(all, lane);
    all ^= all >> 33;
    all *= kSecond;
    all ^= all >> 29;
    all *= kThird;
    return all ^ (all >> 32);
  }

 private:
  static constexpr std::uint64_t kFirst = 0x9e3779b185ebca87u;
  static constexpr std::uint64_t kSecond = 0xc2b2ae3d27d4eb4fu;
  static constexpr std::uint64_t kThird = 0x165667b19e3779f9u;
  static constexpr std::uint64_t kSeed = 0x27d4eb2f165667c5u;
  static std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
    return turn(state + word * kSecond, 31) * kFirst;
  }
  std::uint64_t lanes_[4] = {kFirst, kSecond, kThird, kSeed};
  std::uint64_t size_ = 0;
};

/// The bits of a number; one NaN for all.
std::uint64_t bits_of(double x) {
  if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

}  // namespace

std::uint64_t digest_bytes(const void* bytes, std::int64_t size) {
  Digest digest;
  const char* at = static_cast<const char*>(bytes);
  std::uint64_t words[4096];
  for (std::int64_t done = 0; done < size;) {
    const std::int64_t count =
        std::min<std::int64_t>(sizeof words, size - done);
    const std::int64_t whole = (count + 7) / 8;
    words[whole - 1] = 0;
    std::memcpy(words, at + done, static_cast<std::size_t>(count));
    digest.take(words, whole);
    done += count;
    poll_after(0.5 * static_cast<double>(count));
  }
  digest.take(static_cast<std::uint64_t>(size));
  return digest.value();
}

RowDigests::RowDigests(std::int64_t num_points, std::int64_t num_features)
    : num_features_(num_features),
      of_row_(static_cast<std::size_t>(num_points)) {}

void RowDigests::take(std::int64_t point, const double* row) {
  constexpr std::int64_t kAtOnce = 512;  // all lanes alike
  std::uint64_t words[kAtOnce];
  Digest digest;
  for (std::int64_t f0 = 0; f0 < num_features_; f0 += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, num_features_ - f0);
    for (std::int64_t f = 0; f < count; ++f) words[f] = bits_of(row[f0 + f]);
    digest.take(words, count);
  }
  of_row_[static_cast<std::size_t>(point)] = digest.value();
}

std::string RowDigests::value() const {
  Digest all;
  all.take(static_cast<std::uint64_t>(of_row_.size()));
  all.take(static_cast<std::uint64_t>(num_features_));
  all.take(of_row_.data(), static_cast<std::int64_t>(of_row_.size()));
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

std::string hexadecimal(std::uint64_t digest) {
  std::string text(16, '0');
  for (int at = 15; at >= 0; --at, digest >>= 4)
    text[static_cast<std::size_t>(at)] = "0123456789abcdef"[digest & 15];
  return text;
}

}  // namespace fsknn
