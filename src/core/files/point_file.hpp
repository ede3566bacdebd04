#pragma once

// Points in a file that several processes read, on several machines: rows with
// a digest of each, so that no row is taken that is not as it was written, and
// each reader reads the rows that it needs.
//
// The form, in the byte order of the machine:
//
//    0   8  "fsknnpts"
//    8   4  version of the form: kPointFileVersion
//   12   4  1 where rows are in the metric's form of length 1, else 0
//   16   8  number of points
//   24   8  number of features
//   32   8  fingerprint: of the work that it belongs to
//   40      rows of doubles
//           XXH64 of each row
//        8  XXH64 of the head and of those

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/source.hpp"

namespace fsknn {

constexpr std::uint32_t kPointFileVersion = 1;

/// Gives whether the name is this file's now: see NewFile::finish_first().
/// Throws FileFailure.
bool write_point_file(const std::string& path, const RowSource& source,
                      std::uint64_t fingerprint);

class PointFile final : public RowSource {
 public:
  enum class State { whole, missing, damaged, other };
  /// Looks at all but the rows. Throws FileFailure where a file that is there
  /// can't be read.
  PointFile(const std::string& path, std::uint64_t fingerprint);
  ~PointFile() override;
  PointFile(const PointFile&) = delete;
  PointFile& operator=(const PointFile&) = delete;

  State state() const { return state_; }

  std::int64_t num_points() const override { return num_points_; }
  std::int64_t num_features() const override { return num_features_; }
  /// Throws FileFailure where a row is not as it was written.
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override;
  bool on_disk() const override { return true; }
  bool prepared() const override { return prepared_; }

 private:
  State look(std::uint64_t fingerprint);
  void take(void* bytes, std::int64_t size, std::int64_t at) const;

  const std::string path_;
  int file_ = -1;
  State state_ = State::missing;
  std::int64_t num_points_ = 0, num_features_ = 0;
  bool prepared_ = false;
  std::vector<std::uint64_t> digests_;  ///< [num_points]
};

}  // namespace fsknn
