#include "cuda/prepare/held_rows.hpp"

#include <memory>
#include <utility>

#include "core/base/kinds.hpp"
#include "core/contract/scaling.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {

HeldRows::HeldRows(const RowSource& source, const std::vector<int>& devices,
                   int num_threads)
    : source_(source) {
  const std::int64_t padded = padded_features(source.num_features());
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<PrepareTarget> targets;
  for (const int device : devices) {
    const DeviceGuard guard(device);
    sides_.push_back(
        {device, DeviceBuffer<double>(source.num_points() * padded)});
    streams.push_back(std::make_unique<Stream>());
    PrepareTarget target;
    target.device = device;
    target.stream = streams.back()->get();
    target.rows = sides_.back().rows.data();
    targets.push_back(target);
  }
  RowRecipe as_read;
  as_read.form = RowForm::ready;
  Preparer preparer(source, as_read, num_threads, devices);
  preparer.prepare(PointId{0}, source.num_points(), targets);
  preparer.check();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const DeviceGuard guard(devices[s]);
    streams[s]->wait();
  }
}

HeldRows::~HeldRows() {
  for (Side& side : sides_) {
    const GivingBackOn device(side.device);
    side.rows = DeviceBuffer<double>();
  }
}

const double* HeldRows::on(int device) const {
  for (const Side& side : sides_)
    if (side.device == device) return side.rows.data();
  return nullptr;
}

double HeldRows::bytes() const {
  return sides_.empty() ? 0.0
                        : static_cast<double>(sides_.front().rows.size()) * 8;
}

}  // namespace cuda
}  // namespace fsknn
