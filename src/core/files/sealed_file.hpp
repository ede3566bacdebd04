#pragma once

// Sealed files: columns of plain values that are read only if they are
// unchanged. Nothing in a file is used before a digest matches. No value is
// copied before the type and length of its column match the reader's.
//
// The format, in the machine's byte order (another order reads as another
// version); names are padded with zeros:
//
//    0   8  "fsknn\r\n\x1a", which is not text and which a transfer as text
//           changes
//    8   4  version of the format: kSealedVersion
//   12   4  number of columns
//   16   8  size of the whole file in bytes
//   24   8  number among the files of its kind, from 0
//   32   8  fingerprint of the work that the file belongs to
//   40  16  kind of content
//   56  32  for each column: 16 name, 4 type (SealedType), 4 zero, 8 number
//           of values
//        8  XXH64 of all that
//           values, column by column, contiguous
//        8  XXH64 of all before it
//
// A file is written under a temporary name and renamed when it is on the disk
// (NewFile), with permissions for its owner only. A name refers to one file or
// another, never to parts of two, so it may be read while it is rewritten.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/files/digest.hpp"
#include "core/files/durable.hpp"

namespace fsknn {

constexpr std::uint32_t kSealedVersion = 1;

enum class SealedType : std::uint32_t { int32 = 1, float64 = 2, byte = 3 };

/// Bytes of one value.
std::int64_t size_of(SealedType type);

struct SealedColumn {
  std::string name;  ///< at most 15 bytes
  SealedType type;
  std::int64_t length;
};

struct SealedHead {
  std::string kind;  ///< at most 15 bytes
  std::int64_t number = 0;
  std::uint64_t fingerprint = 0;
  std::vector<SealedColumn> columns;
};

/// The action if a file already has the name.
enum class SealedPlace {
  replace,  ///< replace that file
  first     ///< keep that file: see NewFile::finish_first()
};

/// values: the first value of each column. Returns whether this file has the
/// name now. Throws FileFailure, and then the name is unchanged; throws
/// std::invalid_argument if a name is too long or a length negative.
bool write_sealed(const std::string& path, const SealedHead& head,
                  const std::vector<const void*>& values,
                  SealedPlace place = SealedPlace::replace);

enum class SealedState {
  whole,    ///< the head is intact
  missing,  ///< there is no such file
  unknown,  ///< not a sealed file, or another version of the format
  damaged   ///< truncated, longer, or changed
};

/// A sealed file, read in two steps.
class SealedFile {
 public:
  /// Reads the head. Throws FileFailure if an existing file can't be read.
  explicit SealedFile(const std::string& path);

  SealedState state() const { return state_; }
  /// If the state is whole: its lengths add up to the file's size.
  const SealedHead& head() const { return head_; }

  /// Reads the values of each column into memory that has room for them.
  /// Returns whether they are unchanged; otherwise they must not be used. Call
  /// it once, and only if the state is whole.
  bool read(const std::vector<void*>& places);

 private:
  SealedState read_head(const std::string& path);
  /// Returns whether the file had that many bytes; the digest then includes
  /// them.
  bool take(void* bytes, std::int64_t size);

  std::unique_ptr<InputFile> file_;
  SealedHead head_;
  Digest digest_;
  SealedState state_;
};

}  // namespace fsknn
