#pragma once

// Claims on work that several processes on several machines share, through
// files only. POSIX.
//
// A claimant creates a file of its own and links it to the claim's name. A link
// to an existing name fails, so exactly one succeeds. The link count of the
// file tells whether it did. While it works, it increments a counter in that
// file. Others read the counter under the claim's name, and measure with their
// own clock how long it has not changed. So clocks are never compared.

#include <memory>
#include <string>

namespace fsknn {

class Lease {
 public:
  /// own: a file that must not exist; claim: the name that is claimed. words:
  /// text after the counter, for readers. The counter is incremented every
  /// `seconds`. Throws FileFailure. If another process deletes `own` before it
  /// is linked, the claim is not held, and the caller may try again.
  Lease(const std::string& own, const std::string& claim,
        const std::string& words, double seconds);
  /// Stops the counter and deletes both names. In a fork of the holder it does
  /// neither, because both belong to the parent.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Whether this holds the claim; if not, no file is left.
  bool held() const { return held_; }

 private:
  struct Beat;

  /// Does not report errors: if writing fails, the counter does not change, and
  /// another process takes over the work.
  bool write_count();
  void drop();

  const std::string own_, claim_;
  int file_ = -1;
  bool held_ = false;
  const long process_;  ///< a fork has no counting thread
  unsigned long long count_ = 0;
  std::unique_ptr<Beat> beat_;
};

}  // namespace fsknn
