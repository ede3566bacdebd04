#include "core/files/point_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/buffer.hpp"
#include "core/base/poll.hpp"
#include "core/files/digest.hpp"
#include "core/files/durable.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

struct Head {
  char magic[8];
  std::uint32_t version, prepared;
  std::int64_t num_points, num_features;
  std::uint64_t fingerprint;
};
static_assert(sizeof(Head) == 40, "it is written as it is");

constexpr char kPointFileMagic[9] = "fsknnpts";

std::uint64_t digest_of(const Head& head,
                        const std::vector<std::uint64_t>& of_rows) {
  Digest digest;
  digest.take(&head, sizeof head);
  digest.take(of_rows.data(), static_cast<std::int64_t>(of_rows.size()) * 8);
  return digest.value();
}

std::uint64_t digest_of(const double* row, std::int64_t num_features) {
  Digest digest;
  digest.take(row, num_features * 8);
  return digest.value();
}

}  // namespace

bool write_point_file(const std::string& path, const RowSource& source,
                      std::uint64_t fingerprint) {
  const std::int64_t n = source.num_points(), d = source.num_features();
  Head head = {};
  std::memcpy(head.magic, kPointFileMagic, sizeof head.magic);
  head.version = kPointFileVersion;
  head.prepared = source.prepared() ? 1 : 0;
  head.num_points = n;
  head.num_features = d;
  head.fingerprint = fingerprint;
  NewFile file(path);
  file.write(&head, sizeof head);
  std::vector<std::uint64_t> digests;
  digests.reserve(static_cast<std::size_t>(n));
  const std::int64_t at_once = rows_per_block(std::max<std::int64_t>(d, 1));
  Buffer<double> rows(at_once * d);
  for (std::int64_t first = 0; first < n; first += at_once) {
    const std::int64_t count = std::min(at_once, n - first);
    source.read(first, count, rows.data(), d);
    for (std::int64_t r = 0; r < count; ++r)
      digests.push_back(digest_of(rows.data() + r * d, d));
    file.write(rows.data(), count * d * 8);
  }
  const std::uint64_t all = digest_of(head, digests);
  file.write(digests.data(), n * 8);
  file.write(&all, sizeof all);
  return file.finish_first();
}

PointFile::PointFile(const std::string& path, std::uint64_t fingerprint)
    : path_(path),
      file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  if (file_ < 0) {
    if (errno == ENOENT) return;
    fail_file(path);
  }
  try {
    state_ = look(fingerprint);
  } catch (...) {
    close(file_);
    throw;
  }
}

PointFile::~PointFile() {
  if (file_ >= 0) close(file_);
}

PointFile::State PointFile::look(std::uint64_t fingerprint) {
  struct stat facts;
  if (fstat(file_, &facts) != 0) fail_file(path_);
  if (!S_ISREG(facts.st_mode)) throw FileFailure{path_, "it is not a file", 0};
  const std::int64_t size = static_cast<std::int64_t>(facts.st_size);
  Head head;
  if (size < static_cast<std::int64_t>(sizeof head)) return State::damaged;
  take(&head, sizeof head, 0);
  if (std::memcmp(head.magic, kPointFileMagic, sizeof head.magic) != 0)
    return State::damaged;
  if (head.version != kPointFileVersion) return State::other;
  const std::int64_t n = head.num_points, d = head.num_features;
  // Limited by the file's size, so that a damaged head does not request much
  // memory.
  const std::int64_t room = (size - static_cast<std::int64_t>(sizeof head)) / 8;
  if (n < 0 || d < 0 || n > room || (n > 0 && d > room / n) ||
      size != static_cast<std::int64_t>(sizeof head) + n * (d + 1) * 8 + 8)
    return State::damaged;
  digests_.resize(static_cast<std::size_t>(n));
  const std::int64_t table = static_cast<std::int64_t>(sizeof head) + n * d * 8;
  take(digests_.data(), n * 8, table);
  std::uint64_t all;
  take(&all, sizeof all, table + n * 8);
  if (all != digest_of(head, digests_)) return State::damaged;
  if (head.fingerprint != fingerprint) return State::other;
  num_points_ = n;
  num_features_ = d;
  prepared_ = head.prepared != 0;
  return State::whole;
}

void PointFile::take(void* bytes, std::int64_t size, std::int64_t at) const {
  char* to = static_cast<char*>(bytes);
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 24;
  while (size > 0) {
    const ssize_t done =
        pread(file_, to, static_cast<std::size_t>(std::min(size, kAtOnce)),
              static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_file(path_);
    if (done == 0) throw FileFailure{path_, "it is shorter than it was", 0};
    to += done;
    at += done;
    size -= done;
    poll();
  }
}

void PointFile::read(std::int64_t first, std::int64_t count, double* out,
                     std::int64_t stride) const {
  const std::int64_t d = num_features_;
  const std::int64_t start =
      static_cast<std::int64_t>(sizeof(Head)) + first * d * 8;
  if (stride == d)
    take(out, count * d * 8, start);
  else
    for (std::int64_t r = 0; r < count; ++r)
      take(out + r * stride, d * 8, start + r * d * 8);
  for (std::int64_t r = 0; r < count; ++r)
    if (digest_of(out + r * stride, d) !=
        digests_[static_cast<std::size_t>(first + r)])
      throw FileFailure{
          path_,
          "row " + std::to_string(first + r + 1) + " is not as it was written",
          0};
}

}  // namespace fsknn
