#include "core/rows/metafeatures.hpp"

#include <cstring>

namespace fsknn {
namespace {

/// Eight at a time, because compilers vectorise a loop of known length at any
/// level of optimisation.
template <PairOperator op>
void combine_rows(const double* a, const double* b, std::int64_t d,
                  double* out) {
  std::int64_t f = 0;
  for (; f + kLanes <= d; f += kLanes)
    for (int l = 0; l < kLanes; ++l)
      out[f + l] = combine(op, a[f + l], b[f + l]);
  for (; f < d; ++f) out[f] = combine(op, a[f], b[f]);
}

}  // namespace

MetafeatureSource::MetafeatureSource(const RowSource& small,
                                     const MetafeatureOrder& order,
                                     const std::vector<std::int32_t>* kept)
    : num_features_(small.num_features()),
      stride_(padded_features(num_features_)),
      order_(order),
      whole_(kept == nullptr),
      small_(small_rows() * stride_) {
  if (kept != nullptr) kept_ = *kept;
  small.read(0, small_rows(), small_.data(), stride_);
  for (std::int64_t r = 0; r < small_rows(); ++r)
    for (std::int64_t f = num_features_; f < stride_; ++f)
      small_[r * stride_ + f] = 0.0;
}

void MetafeatureSource::make(MadeOf made, double* out) const {
  const double* a = small_.data() + made.first * stride_;
  if (made.second < 0) {
    std::memcpy(out, a, static_cast<std::size_t>(num_features_) * 8);
    return;
  }
  const double* b = small_.data() + made.second * stride_;
  const std::int64_t d = num_features_;
  switch (made.op) {
    case PairOperator::minus:
      return combine_rows<PairOperator::minus>(a, b, d, out);
    case PairOperator::plus:
      return combine_rows<PairOperator::plus>(a, b, d, out);
    case PairOperator::times:
      return combine_rows<PairOperator::times>(a, b, d, out);
    case PairOperator::divided:
      return combine_rows<PairOperator::divided>(a, b, d, out);
  }
  throw_unknown("operator", static_cast<int>(made.op));
}

void MetafeatureSource::read(std::int64_t first, std::int64_t count,
                             double* out, std::int64_t stride) const {
  MadeOf made = {0, -1, PairOperator::minus};
  bool next_known = false;
  for (std::int64_t r = 0; r < count; ++r, out += stride) {
    if (!next_known) made = made_of(first + r);
    make(made, out);
    // The next pair has the same first row, except after a row's last pair.
    next_known =
        whole_ && made.second >= 0 && made.second + 1 < order_.num_rows;
    if (next_known) ++made.second;
  }
}

}  // namespace fsknn
