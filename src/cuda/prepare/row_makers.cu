#include "cuda/prepare/row_makers.hpp"

#include <stdexcept>
#include <vector>

#include "core/rows/latent.hpp"
#include "core/rows/metafeatures.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The parts from which latent rows are computed. Device memory.
struct LatentParts {
  LatentRule rule;
  /// [num_factors x num_features], row-major
  const std::int32_t* loadings = nullptr;
  const std::int32_t* numbers = nullptr;  ///< by point; null: its own number
};

// Does what LatentSource::read() does. Grid: x over rows. Block: any. Shared: 1
// KiB, static.
__global__ void make_latent(const LatentParts parts, const std::int32_t* ids,
                            std::int64_t first, const PanelRows to) {
  __shared__ std::int32_t scores[LatentRule::kMostFactors];
  const std::int64_t r = blockIdx.x, target = to.target(r);
  if (target < 0) return;  // by the whole block
  const std::int64_t point = ids == nullptr ? first + r : ids[r];
  const std::int64_t row =
      parts.numbers == nullptr ? point : parts.numbers[point];
  const LatentRule& rule = parts.rule;
  for (std::int32_t j = static_cast<std::int32_t>(threadIdx.x);
       j < rule.num_factors; j += static_cast<std::int32_t>(blockDim.x))
    scores[j] = rule.score(row, j);
  __syncthreads();
  for (std::int64_t f = threadIdx.x; f < to.padded; f += blockDim.x) {
    double value = 0.0;
    if (f < to.num_features) {
      std::int64_t sum = rule.noise_at(row, f);
      for (std::int32_t j = 0; j < rule.num_factors; ++j)
        sum += static_cast<std::int64_t>(scores[j]) *
               parts.loadings[j * rule.num_features + f];
      value = LatentRule::value(sum);
    }
    to.rows[target * to.padded + f] = value;
  }
}

/// Copies numbers_made() to the device.
DeviceBuffer<std::int32_t> numbers_on_device(const MadeFrom& from,
                                             std::int64_t num_points,
                                             const Stream& stream) {
  const std::vector<std::int32_t> numbers = numbers_made(from, num_points);
  DeviceBuffer<std::int32_t> held(static_cast<std::int64_t>(numbers.size()));
  if (!numbers.empty()) upload(held, numbers.data(), held.size(), stream);
  stream.wait();  // the vector is freed
  return held;
}

class MetafeatureMaker final : public RowMaker {
 public:
  MetafeatureMaker(const MetafeatureSource& source, const MadeFrom& from,
                   std::int64_t num_points, const Stream& stream)
      : rows_(source.small_rows() * source.small_stride()),
        kept_(numbers_on_device(from, num_points, stream)) {
    upload(rows_, source.small(), rows_.size(), stream);
    stream.wait();
    small_.order = source.order();
    small_.rows = rows_.data();
    small_.stride = source.small_stride();
    small_.kept = kept_.data();
  }
  void start(const std::int32_t* ids, std::int64_t first, const PanelRows& to,
             cudaStream_t stream) const override {
    start_make(small_, ids, first, to, stream);
  }

 private:
  DeviceBuffer<double> rows_;
  DeviceBuffer<std::int32_t> kept_;
  SmallMatrix small_;
};

class LatentMaker final : public RowMaker {
 public:
  LatentMaker(const LatentSource& source, const MadeFrom& from,
              std::int64_t num_points, const Stream& stream)
      : loadings_(static_cast<std::int64_t>(source.loadings().size())),
        numbers_(numbers_on_device(from, num_points, stream)) {
    upload(loadings_, source.loadings().data(), loadings_.size(), stream);
    stream.wait();
    parts_.rule = source.rule();
    parts_.loadings = loadings_.data();
    parts_.numbers = numbers_.data();
  }
  void start(const std::int32_t* ids, std::int64_t first, const PanelRows& to,
             cudaStream_t stream) const override {
    if (to.count == 0) return;
    make_latent<<<static_cast<unsigned>(to.count), kMakeThreads, 0, stream>>>(
        parts_, ids, first, to);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  DeviceBuffer<std::int32_t> loadings_, numbers_;
  LatentParts parts_;
};

}  // namespace

std::unique_ptr<RowMaker> make_row_maker(const MadeFrom& from,
                                         std::int64_t num_points,
                                         const Stream& stream) {
  using Made = std::unique_ptr<RowMaker>;
  if (const auto* source = dynamic_cast<const MetafeatureSource*>(from.source))
    return Made(new MetafeatureMaker(*source, from, num_points, stream));
  if (const auto* source = dynamic_cast<const LatentSource*>(from.source))
    return Made(new LatentMaker(*source, from, num_points, stream));
  throw std::logic_error("no device makes the rows of such a source");
}

}  // namespace cuda
}  // namespace fsknn
