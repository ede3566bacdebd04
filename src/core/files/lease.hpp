#pragma once

// Claims on work that several processes share, on several machines, by files
// alone. POSIX.
//
// Who claims makes a file of its own and links it to the claim's name: a name
// that is there can't be linked to, so that one alone succeeds. Whether it did
// is asked of the file itself, by the number of its names. While it works it
// counts up in that file. Others see the count through the claim's name, and
// judge by a clock of their own how long it has stood still: no two clocks are
// compared.

#include <memory>
#include <string>

namespace fsknn {

class Lease {
 public:
  /// own: a file that is not there yet; claim: the name that several may want.
  /// words: follow the count, for those who look. It is counted up every
  /// `seconds`. Throws FileFailure. If another process deletes `own` before it
  /// is linked, the claim is not held, and the caller may try again.
  Lease(const std::string& own, const std::string& claim,
        const std::string& words, double seconds);
  /// Ends the counting and takes both names away. In a fork of the process that
  /// has it, it does neither: both are the other's.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Whether the claim is ours; else nothing is left of it.
  bool held() const { return held_; }

 private:
  struct Beat;

  /// Errors are not told: what can't be written is a count that stands still,
  /// and somebody else does the work.
  bool write_count();
  void drop();

  const std::string own_, claim_;
  int file_ = -1;
  bool held_ = false;
  const long process_;  ///< a fork has no thread
  unsigned long long count_ = 0;
  std::unique_ptr<Beat> beat_;
};

}  // namespace fsknn
