#pragma once

// Keeps rows on devices as they were read, so that they can be prepared from
// there any number of times, with any recipe.

#include <cstdint>
#include <vector>

#include "core/rows/source.hpp"
#include "cuda/device/resources.hpp"

namespace fsknn {
namespace cuda {

/// A source whose rows some devices hold. A Preparer on those reads them there.
/// On other devices, and on the host, it stands for the original source, which
/// must outlive it.
class HeldRows final : public RowSource {
 public:
  /// devices: CUDA's own numbers. Reads the source once, and sends it to each.
  HeldRows(const RowSource& source, const std::vector<int>& devices,
           int num_threads);
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;
  ~HeldRows() override;

  std::int64_t num_points() const override { return source_.num_points(); }
  std::int64_t num_features() const override { return source_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    source_.read(first, count, out, stride);
  }
  bool prepared() const override { return source_.prepared(); }

  const RowSource& source() const { return source_; }
  /// [num_points x padded features], row-major, device memory; null: not on
  /// this device.
  const double* on(int device) const;
  /// Returns the bytes on each of the devices.
  double bytes() const;

 private:
  struct Side {
    int device;
    DeviceBuffer<double> rows;
  };
  const RowSource& source_;
  std::vector<Side> sides_;
};

}  // namespace cuda
}  // namespace fsknn
