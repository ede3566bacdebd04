#pragma once

namespace fsknn {

/// Told how far the work is; asked whether to go on. Called on the thread that
/// started the work, between pieces of it, about ten times a second.
class Progress {
 public:
  virtual ~Progress() = default;
  /// done: share of the work, 0 to 1; below 0: as before. Returns false to
  /// stop.
  virtual bool report(double done) = 0;
};

}  // namespace fsknn
