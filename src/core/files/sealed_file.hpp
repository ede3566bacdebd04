#pragma once

// Sealed files: columns of plain values that are as they were written, or are
// not taken. Of what is in one nothing is believed before a digest agrees, and
// no value is copied before its column's type and length are what the reader
// asked for.
//
// The form, in the byte order of the machine (another order reads as another
// version); what is left over of a name is filled with zeros:
//
//    0   8  "fsknn\r\n\x1a", which no text is, nor what a transfer as text
//           leaves of it
//    8   4  version of the form: kSealedVersion
//   12   4  number of columns
//   16   8  bytes of the whole file
//   24   8  number: which of its kind it is, from 0
//   32   8  fingerprint: of the work that it belongs to
//   40  16  kind: what it holds
//   56  32  for each column: 16 its name, 4 its type (SealedType), 4 zero,
//           8 how many values it has
//        8  XXH64 of all that
//           the values, column by column, with nothing between them
//        8  XXH64 of all before it
//
// A file is written beside its name and named when it is on the disk (NewFile),
// for its owner alone. A name holds one file or another, never parts of two: it
// may be read while it is written anew.

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

/// What becomes of a file that has the name already.
enum class SealedPlace {
  replace,  ///< this one takes its place
  first     ///< it stays: see NewFile::finish_first()
};

/// values: of each column, where its first one is. Gives whether the name is
/// this file's now. Throws FileFailure, and the name is as it was then;
/// std::invalid_argument for a name that is too long or a negative length.
bool write_sealed(const std::string& path, const SealedHead& head,
                  const std::vector<const void*>& values,
                  SealedPlace place = SealedPlace::replace);

enum class SealedState {
  whole,    ///< the head is
  missing,  ///< there is no such file
  unknown,  ///< something else, or of another version of the form
  damaged   ///< cut, longer, or other bytes than were written
};

/// A sealed file, read in two steps.
class SealedFile {
 public:
  /// The head. Throws FileFailure where a file that is there can't be read.
  explicit SealedFile(const std::string& path);

  SealedState state() const { return state_; }
  /// Where the state is whole: lengths add up to the file's size.
  const SealedHead& head() const { return head_; }

  /// All values, each column's to its place, which has room for its length.
  /// Returns whether they are as they were written: only then are they any
  /// good. Once, and where the state is whole.
  bool read(const std::vector<void*>& places);

 private:
  SealedState read_head(const std::string& path);
  /// Whether there were so many; they are in the digest then.
  bool take(void* bytes, std::int64_t size);

  std::unique_ptr<InputFile> file_;
  SealedHead head_;
  Digest digest_;
  SealedState state_;
};

}  // namespace fsknn
