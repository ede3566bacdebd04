#include "core/files/sealed_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fsknn {
namespace {

constexpr char kSealedMagic[9] = "fsknn\r\n\x1a";
constexpr std::size_t kNameSize = 16;
// Far more than any file has, so that a damaged head does not request much
// memory.
constexpr std::uint32_t kMostColumns = 1024;

struct StoredHead {
  char magic[8];
  std::uint32_t version, num_columns;
  std::int64_t file_size, number;
  std::uint64_t fingerprint;
  char kind[kNameSize];
};
static_assert(sizeof(StoredHead) == 56, "it is written as it is");

struct StoredColumn {
  char name[kNameSize];
  std::uint32_t type, zero;
  std::int64_t length;
};
static_assert(sizeof(StoredColumn) == 32, "it is written as it is");

constexpr std::int64_t kDigestSize = sizeof(std::uint64_t);

void store_name(const std::string& name, char (&to)[kNameSize]) {
  if (name.size() >= kNameSize || name.find('\0') != std::string::npos)
    throw std::invalid_argument("a name in a sealed file has up to 15 bytes");
  std::fill_n(to, kNameSize, '\0');
  std::copy(name.begin(), name.end(), to);
}

std::string stored_name(const char (&from)[kNameSize]) {
  return std::string(from, std::find(from, from + kNameSize, '\0'));
}

bool is_type(std::uint32_t type) {
  return type >= static_cast<std::uint32_t>(SealedType::int32) &&
         type <= static_cast<std::uint32_t>(SealedType::byte);
}

std::int64_t head_size(std::size_t num_columns) {
  return static_cast<std::int64_t>(sizeof(StoredHead) +
                                   num_columns * sizeof(StoredColumn)) +
         kDigestSize;
}

/// Writes bytes and adds them to the digest.
class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}
  void write(const void* bytes, std::int64_t size) {
    // In parts, so that the cache still has the bytes when they are written;
    // Digest does not call poll().
    constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
    const char* at = static_cast<const char*>(bytes);
    for (; size > 0; at += kAtOnce, size -= kAtOnce) {
      const std::int64_t count = std::min(size, kAtOnce);
      digest_.take(at, count);
      file_.write(at, count);
    }
  }
  void write_digest() {
    const std::uint64_t value = digest_.value();
    write(&value, kDigestSize);
  }
  bool finish(SealedPlace place) {
    switch (place) {
      case SealedPlace::first: return file_.finish_first();
      case SealedPlace::replace: file_.finish(); return true;
    }
    throw std::invalid_argument("a sealed file has no such place");
  }

 private:
  NewFile file_;
  Digest digest_;
};

}  // namespace

std::int64_t size_of(SealedType type) {
  switch (type) {
    case SealedType::int32: return 4;
    case SealedType::float64: return 8;
    case SealedType::byte: return 1;
  }
  throw std::invalid_argument("a sealed file has no such type");
}

bool write_sealed(const std::string& path, const SealedHead& head,
                  const std::vector<const void*>& values, SealedPlace place) {
  if (values.size() != head.columns.size() || values.size() > kMostColumns)
    throw std::invalid_argument("a sealed file has values of each column");
  StoredHead stored = {};
  std::memcpy(stored.magic, kSealedMagic, sizeof stored.magic);
  stored.version = kSealedVersion;
  stored.num_columns = static_cast<std::uint32_t>(values.size());
  stored.number = head.number;
  stored.fingerprint = head.fingerprint;
  store_name(head.kind, stored.kind);
  stored.file_size = head_size(values.size()) + kDigestSize;
  std::vector<StoredColumn> table;
  for (const SealedColumn& column : head.columns) {
    if (column.length < 0)
      throw std::invalid_argument("a column has no negative length");
    StoredColumn entry = {};
    store_name(column.name, entry.name);
    entry.type = static_cast<std::uint32_t>(column.type);
    entry.length = column.length;
    table.push_back(entry);
    stored.file_size += column.length * size_of(column.type);
  }

  Writer out(path);
  out.write(&stored, sizeof stored);
  out.write(table.data(),
            static_cast<std::int64_t>(table.size() * sizeof(StoredColumn)));
  out.write_digest();
  for (std::size_t c = 0; c < values.size(); ++c)
    out.write(values[c],
              head.columns[c].length * size_of(head.columns[c].type));
  out.write_digest();
  return out.finish(place);
}

SealedFile::SealedFile(const std::string& path) : state_(read_head(path)) {}

SealedState SealedFile::read_head(const std::string& path) {
  try {
    file_ = std::make_unique<InputFile>(path);
  } catch (const FileFailure& e) {
    if (e.error == ENOENT) return SealedState::missing;
    throw;
  }
  StoredHead stored = {};
  const bool is_all = take(&stored, sizeof stored);
  if (std::memcmp(stored.magic, kSealedMagic, sizeof stored.magic) != 0)
    return SealedState::unknown;
  if (!is_all) return SealedState::damaged;
  if (stored.version != kSealedVersion) return SealedState::unknown;
  if (stored.file_size != file_->size() || stored.num_columns > kMostColumns)
    return SealedState::damaged;
  std::vector<StoredColumn> table(stored.num_columns);
  if (!take(table.data(),
            static_cast<std::int64_t>(table.size() * sizeof(StoredColumn))))
    return SealedState::damaged;
  const std::uint64_t expected = digest_.value();
  std::uint64_t digest;
  if (!take(&digest, sizeof digest) || digest != expected)
    return SealedState::damaged;

  // A matching digest means that write_sealed() made the file, or a forger. So
  // the lengths are checked as well.
  std::int64_t left = stored.file_size - head_size(table.size()) - kDigestSize;
  head_.kind = stored_name(stored.kind);
  head_.number = stored.number;
  head_.fingerprint = stored.fingerprint;
  for (const StoredColumn& entry : table) {
    if (!is_type(entry.type)) return SealedState::damaged;
    const SealedType type = static_cast<SealedType>(entry.type);
    if (entry.length < 0 || entry.length > left / size_of(type))
      return SealedState::damaged;
    left -= entry.length * size_of(type);
    head_.columns.push_back({stored_name(entry.name), type, entry.length});
  }
  return left == 0 ? SealedState::whole : SealedState::damaged;
}

bool SealedFile::read(const std::vector<void*>& places) {
  if (state_ != SealedState::whole || places.size() != head_.columns.size())
    throw std::invalid_argument("a sealed file is read once, each column");
  state_ =
      SealedState::damaged;  // until the end was checked, and for a second call
  for (std::size_t c = 0; c < places.size(); ++c) {
    const SealedColumn& column = head_.columns[c];
    if (!take(places[c], column.length * size_of(column.type))) return false;
  }
  const std::uint64_t expected = digest_.value();
  std::uint64_t digest;
  // The file's length may have changed since it was opened.
  char more;
  return take(&digest, sizeof digest) && digest == expected &&
         file_->read(&more, 1) == 0;
}

bool SealedFile::take(void* bytes, std::int64_t size) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  char* at = static_cast<char*>(bytes);
  for (; size > 0; at += kAtOnce, size -= kAtOnce) {
    const std::int64_t count = std::min(size, kAtOnce);
    if (file_->read(at, count) != count) return false;
    digest_.take(at, count);
  }
  return true;
}

}  // namespace fsknn
