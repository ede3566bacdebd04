#pragma once

// Points in a file that several processes on several machines read. Each row
// has a digest, so that changed rows are detected and each reader reads only
// the rows that it needs.
//
// The format, in the machine's byte order:
//
//    0   8  "fsknnpts"
//    8   4  version of the format: kPointFileVersion
//   12   4  1 if rows are in the metric's form of length 1, else 0
//   16   8  number of points
//   24   8  number of features
//   32   8  fingerprint of the work that the file belongs to
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

/// Returns whether this file has the name now: see NewFile::finish_first().
/// Throws FileFailure.
bool write_point_file(const std::string& path, const RowSource& source,
                      std::uint64_t fingerprint);

class PointFile final : public RowSource {
 public:
  enum class State { whole, missing, damaged, other };
  /// Checks everything except the rows. Throws FileFailure if an existing file
  /// can't be read.
  PointFile(const std::string& path, std::uint64_t fingerprint);
  ~PointFile() override;
  PointFile(const PointFile&) = delete;
  PointFile& operator=(const PointFile&) = delete;

  State state() const { return state_; }

  std::int64_t num_points() const override { return num_points_; }
  std::int64_t num_features() const override { return num_features_; }
  /// Throws FileFailure if a row was changed.
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
