#include "cuda/prepare/preparer.hpp"

#include <algorithm>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/subset.hpp"
#include "cuda/device/staging.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/pieces.hpp"
#include "cuda/prepare/held_rows.hpp"
#include "cuda/prepare/read_pieces.hpp"
#include "cuda/prepare/row_kernels.hpp"
#include "cuda/prepare/row_makers.hpp"

namespace fsknn {
namespace cuda {
namespace {

constexpr std::int64_t kPinnedPieces = 6;
constexpr std::int64_t kMostParts = 16;
// Rows that do not come from the host, at a time: enough for all of a device's
// threads, and few enough for an interrupt to wait only milliseconds.
constexpr std::int64_t kRowsOnDevice = 16 * kEnoughRows;
// One more thread pays from this many bytes on.
constexpr double kBytesPerThread = 1 << 20;

}  // namespace

class Preparer::Impl {
 public:
  Impl(const RowSource& source, const RowRecipe& recipe, int num_threads,
       std::vector<int> devices, std::int64_t most_rows)
      : held_(held_on(source, devices)),
        features_(dynamic_cast<const FeatureSubset*>(&source)),
        source_(without_holding(source)),
        doubles_(dynamic_cast<const MatrixSource<double>*>(&source_)),
        ints_(dynamic_cast<const MatrixSource<int>*>(&source_)),
        made_from_(source_.made_from()),
        recipe_(what_is_left(recipe, source)),
        num_threads_(num_threads),
        shape_(most_rows > 0 ? std::min(most_rows, source.num_points())
                             : source.num_points(),
               source.num_features(), doubles_ != nullptr || ints_ != nullptr),
        value_bytes_(ints_ != nullptr ? sizeof(int) : sizeof(double)),
        pinned_(on_devices()
                    ? 0
                    : std::max<std::int64_t>(
                          2, std::min(kPinnedPieces,
                                      shape_.pieces *
                                          shape_.panels(source.num_points()))),
                shape_.piece_bytes) {
    for (const int device : devices) {
      const DeviceGuard guard(device);
      sides_.push_back(std::make_unique<Side>(*this, device));
    }
  }

  void prepare(const Points& points,
               const std::vector<PrepareTarget>& targets) {
    if (points.count == 0) return;
    begin({points});
    next(targets);
  }

  void begin(std::vector<Points> ranges) {
    abandon();
    ranges_ = std::move(ranges);
    now_ = 0;
    first_of_.assign(1, 0);
    for (const Points& points : ranges_)
      first_of_.push_back(first_of_.back() +
                          shape_.panels(points.count) * shape_.pieces);
    if (on_devices()) return;
    if (!team_) start_team();
    team_->begin(first_of_.back());
    released_ = 0;
    under_way_ = true;
  }

  void next(const std::vector<PrepareTarget>& targets) {
    targets_ = &targets;
    if (on_devices())
      make(ranges_[now_]);
    else
      stage();
    if (++now_ == ranges_.size()) abandon();
  }

  void check() {
    if (!recipe_.needs_sums) return;
    for (const std::unique_ptr<Side>& side : sides_) {
      const DeviceGuard guard(side->device);
      side->wait();
      if (downloaded(side->beyond.data(), side->copies) != 0)
        throw RangeFailure();
    }
  }

 private:
  /// The state of one device.
  struct Side {
    Side(const Impl& impl, int device_number)
        : device(device_number),
          buffers(impl.on_devices() ? 0 : impl.shape_.buffers),
          events(static_cast<std::size_t>(impl.pinned_.count())),
          copied(static_cast<std::size_t>(impl.shape_.buffers)),
          used(static_cast<std::size_t>(impl.shape_.buffers)),
          panels(buffers * impl.shape_.panel_size() * impl.value_bytes_),
          beyond(1),
          ranker(impl.ranked() ? impl.shape_.rows : 0,
                 impl.ranked() ? impl.shape_.features : 1),
          recipe(impl.recipe_) {
      if (recipe.needs_sums) clear_from(beyond, 0, copies);
      if (recipe.weights.given()) hold_weights(impl.shape_.features);
      if (recipe.covariates.given()) hold_covariates(impl.shape_.features);
      if (impl.held_ == nullptr && impl.made_from_.source != nullptr)
        maker =
            make_row_maker(impl.made_from_, impl.source_.num_points(), copies);
      if (impl.held_ != nullptr && impl.features_ != nullptr) {
        features = DeviceBuffer<std::int32_t>(impl.shape_.features);
        upload(features, impl.features_->numbers().data(), features.size(),
               copies);
      }
      copies.wait();
    }
    ~Side() {
      // After a failure, work in progress still uses the buffers.
      cudaStreamSynchronize(copies.get());
      for (const Event& event : used) event.wait_at_end();
    }
    void wait() {
      for (Event& event : used) event.wait();
    }
    void hold_weights(std::int64_t num_features) {
      const std::int64_t padded = padded_features(num_features);
      weights = DeviceBuffer<double>(2 * padded);
      upload(weights, recipe.weights.weight, padded, copies);
      CUDA_CHECK(cudaMemcpyAsync(weights.data() + padded, recipe.weights.root,
                                 static_cast<std::size_t>(padded) * 8,
                                 cudaMemcpyHostToDevice, copies.get()));
      recipe.weights.weight = weights.data();
      recipe.weights.root = weights.data() + padded;
    }
    void hold_covariates(std::int64_t num_features) {
      FeatureCovariates& held = recipe.covariates;
      basis =
          DeviceBuffer<double>(held.vectors * padded_features(num_features));
      upload(basis, held.basis, basis.size(), copies);
      held.basis = basis.data();
    }
    char* panel(std::int64_t buffer) {
      return panels.data() + buffer * (panels.size() / buffers);
    }

    const int device;
    const std::int64_t buffers;
    Stream copies;
    std::vector<Event> events;        ///< of each pinned piece: copied from
    std::vector<Event> copied, used;  ///< of each panel buffer
    DeviceBuffer<char> panels;
    DeviceBuffer<std::int32_t> beyond;
    Ranker ranker;
    RowRecipe recipe;  ///< its pointers are device memory
    DeviceBuffer<double> weights, basis;
    DeviceBuffer<std::int32_t> ids, features;
    std::unique_ptr<RowMaker> maker;  ///< null: rows are not computed here
  };

  /// Returns the devices' copy of the source, possibly with more features than
  /// requested; null: not all of the devices have one.
  static const HeldRows* held_on(const RowSource& source,
                                 const std::vector<int>& devices) {
    const FeatureSubset* const some =
        dynamic_cast<const FeatureSubset*>(&source);
    const HeldRows* const held = dynamic_cast<const HeldRows*>(
        some == nullptr ? &source : &some->whole());
    if (held == nullptr) return nullptr;
    for (const int device : devices)
      if (held->on(device) == nullptr) return nullptr;
    return held;
  }
  static const RowSource& without_holding(const RowSource& source) {
    const HeldRows* const held = dynamic_cast<const HeldRows*>(&source);
    return held == nullptr ? source : held->source();
  }
  /// Returns whether the rows are on the devices already, or are computed
  /// there.
  bool on_devices() const {
    return held_ != nullptr || made_from_.source != nullptr;
  }
  RowsAsRead held_rows(const Side& side, const Points& points,
                       std::int64_t row0, const std::int32_t* ids) const {
    const std::int64_t stride = padded_features(held_->num_features());
    const double* const rows = held_->on(side.device);
    return {ids != nullptr ? rows : rows + (points.first.value + row0) * stride,
            stride, ids, side.features.data()};
  }

  bool ranked() const { return recipe_.form == RowForm::ranked; }

  /// Pieces are numbered consecutively over the ranges, each of which has whole
  /// panels.
  const Points& range_of(std::int64_t number) const {
    const auto after =
        std::upper_bound(first_of_.begin(), first_of_.end(), number);
    return ranges_[static_cast<std::size_t>(after - first_of_.begin()) - 1];
  }

  Piece piece(std::int64_t number) const {
    const Points& points = range_of(number);
    const std::int64_t within =
        number - first_of_[static_cast<std::size_t>(&points - ranges_.data())];
    Piece p;
    p.row0 = within / shape_.pieces * shape_.rows;
    p.num_rows = std::min(shape_.rows, points.count - p.row0);
    p.first_feature = within % shape_.pieces * shape_.piece_features;
    p.end_feature =
        std::min(p.first_feature + shape_.piece_features, shape_.features);
    return p;
  }

  std::int64_t bytes_of(const Piece& p) const {
    return p.num_rows * (p.end_feature - p.first_feature) * value_bytes_;
  }

  /// The host's part: all threads fill pinned pieces, which are then copied.
  /// Pieces are used in turn, continuing from call to call.
  void stage() {
    // Half of the pinned pieces are filled while the other half are in
    // transfer.
    const std::int64_t ahead = pinned_.count() / 2;
    for (std::int64_t number = first_of_[now_]; number < first_of_[now_ + 1];
         ++number) {
      for (; released_ < std::min(first_of_.back(), number + ahead);
           ++released_) {
        for (const std::unique_ptr<Side>& side : sides_)
          event_of(*side, released_).wait();
        team_->release(released_ + 1);
      }
      team_->finish(number);
      for (std::size_t s = 0; s < sides_.size(); ++s) send(number, s);
      poll();
    }
  }

  /// Ends the work of begin(), wherever it is.
  void abandon() {
    if (!under_way_) return;
    under_way_ = false;
    for (std::int64_t number = first_of_[now_]; number < released_; ++number)
      team_->finish(number);
    first_panel_ += first_of_.back() / shape_.pieces;
    first_piece_ += first_of_.back();
  }

  void start_team() {
    const std::int64_t num_parts =
        std::min(kMostParts, std::max(shape_.piece_features, shape_.rows));
    const double bytes = static_cast<double>(source_.num_points()) *
                         static_cast<double>(shape_.features) *
                         static_cast<double>(value_bytes_);
    const int threads = static_cast<int>(
        std::min<double>(num_threads_, 1.0 + bytes / kBytesPerThread));
    team_ = std::make_unique<PieceTeam>(
        num_parts, threads,
        [this, num_parts](std::int64_t number, std::int64_t part) {
          fill(range_of(number), piece(number), part, num_parts,
               pinned_[slot_of(number)]);
        });
  }

  std::int64_t slot_of(std::int64_t number) const {
    return (first_piece_ + number) % pinned_.count();
  }

  Event& event_of(Side& side, std::int64_t number) {
    return side.events[static_cast<std::size_t>(slot_of(number))];
  }

  void fill(const Points& points, Piece p, std::int64_t part,
            std::int64_t num_parts, char* to) const {
    const std::int64_t feature0 = p.first_feature;
    if (doubles_ == nullptr && ints_ == nullptr) {
      copy_rows(source_, points, p.row0,
                part_begin(0, p.num_rows, part, num_parts),
                part_begin(0, p.num_rows, part + 1, num_parts),
                reinterpret_cast<double*>(to));
      return;
    }
    const std::int64_t end = p.end_feature;
    p.first_feature = part_begin(feature0, end, part, num_parts);
    p.end_feature = part_begin(feature0, end, part + 1, num_parts);
    if (doubles_ != nullptr)
      copy_columns(*doubles_, points, p, feature0,
                   reinterpret_cast<double*>(to));
    else
      copy_columns(*ints_, points, p, feature0, reinterpret_cast<int*>(to));
  }

  /// Sends a filled piece to one device; the last piece of a panel starts its
  /// kernels.
  void send(std::int64_t number, std::size_t s) {
    Side& side = *sides_[s];
    const PrepareTarget& target = (*targets_)[s];
    const DeviceGuard guard(side.device);
    const Piece p = piece(number);
    const std::size_t buffer = static_cast<std::size_t>(
        (first_panel_ + number / shape_.pieces) % side.buffers);
    char* const panel = side.panel(static_cast<std::int64_t>(buffer));
    if (p.first_feature == 0) side.used[buffer].hold(side.copies);
    CUDA_CHECK(cudaMemcpyAsync(
        panel + p.first_feature * p.num_rows * value_bytes_,
        pinned_[slot_of(number)], static_cast<std::size_t>(bytes_of(p)),
        cudaMemcpyHostToDevice, side.copies.get()));
    event_of(side, number).record(side.copies);
    if (p.end_feature < shape_.features) return;
    side.copied[buffer].record(side.copies);
    side.copied[buffer].hold(target.stream);
    const PanelRows to =
        panel_rows(target, range_of(number), p.row0, p.num_rows);
    if (ints_ != nullptr)
      start_turn(reinterpret_cast<const int*>(panel), to, target.stream);
    else if (doubles_ != nullptr)
      start_turn(reinterpret_cast<const double*>(panel), to, target.stream);
    else
      start_copy({reinterpret_cast<const double*>(panel), shape_.features}, to,
                 target.stream);
    finish(side, target, to, buffer);
  }

  /// Handles rows that devices compute or hold: the host sends only the points'
  /// numbers.
  void make(const Points& points) {
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      Side& side = *sides_[s];
      const PrepareTarget& target = (*targets_)[s];
      const DeviceGuard guard(side.device);
      if (points.ids != nullptr) {
        side.wait();
        side.ids = DeviceBuffer<std::int32_t>(points.count);
        upload(side.ids, points.ids, points.count, side.copies);
        side.copies.wait();
      }
      // Ranks are computed in memory for as many rows as a piece has.
      const std::int64_t rows =
          ranked() ? shape_.rows : std::max(shape_.rows, kRowsOnDevice);
      for (std::int64_t row0 = 0; row0 < points.count; row0 += rows) {
        const PanelRows to = panel_rows(target, points, row0,
                                        std::min(rows, points.count - row0));
        const std::int32_t* const ids =
            points.ids == nullptr ? nullptr : side.ids.data() + row0;
        if (held_ != nullptr)
          start_copy(held_rows(side, points, row0, ids), to, target.stream);
        else
          side.maker->start(ids, points.first.value + row0, to, target.stream);
        finish(side, target, to, 0);
        poll();
      }
    }
  }

  PanelRows panel_rows(const PrepareTarget& target, const Points& points,
                       std::int64_t row0, std::int64_t count) const {
    PanelRows to;
    to.count = count;
    to.num_features = shape_.features;
    to.padded = padded_features(shape_.features);
    to.rows = target.rows;
    to.sums = target.sums;
    if (target.places != nullptr) {
      to.places = target.places + points.first.value + row0;
      to.first_place = target.first_place.value;
      to.num_places = target.num_places;
    } else {
      to.rows += row0 * to.padded;
      if (to.sums != nullptr) to.sums += row0;
    }
    return to;
  }

  /// Converts rows at their places to the form from which pairs are computed.
  void finish(Side& side, const PrepareTarget& target, const PanelRows& at,
              std::size_t buffer) {
    if (ranked()) side.ranker.start(at, target.stream);
    start_prepare(side.recipe, at, side.beyond.data(), target.stream);
    CUDA_CHECK(cudaEventRecord(side.used[buffer].get(), target.stream));
  }

  const HeldRows* const held_;
  const FeatureSubset* const features_;  ///< null: all count
  const RowSource& source_;
  const MatrixSource<double>* doubles_;
  const MatrixSource<int>* ints_;
  const MadeFrom made_from_;
  const RowRecipe recipe_;
  const int num_threads_;
  const PanelShape shape_;
  const std::int64_t value_bytes_;
  PinnedPieces pinned_;
  std::vector<std::unique_ptr<Side>> sides_;
  const std::vector<PrepareTarget>* targets_ = nullptr;
  // The state of begin(): the first piece of each range, and the end of the
  // last one; the next range; the pieces that may be filled.
  std::vector<Points> ranges_;
  std::vector<std::int64_t> first_of_ = {0};
  std::size_t now_ = 0;
  std::int64_t released_ = 0;
  bool under_way_ = false;
  std::int64_t first_panel_ = 0, first_piece_ = 0;
  std::unique_ptr<PieceTeam> team_;
};

Preparer::Preparer(const RowSource& source, const RowRecipe& recipe,
                   int num_threads, std::vector<int> devices,
                   std::int64_t most_rows)
    : impl_(std::make_unique<Impl>(source, recipe, num_threads,
                                   std::move(devices), most_rows)) {}

Preparer::~Preparer() = default;

void Preparer::prepare(PointId first, std::int64_t count,
                       const std::vector<PrepareTarget>& targets) {
  Points points;
  points.first = first;
  points.count = count;
  impl_->prepare(points, targets);
}

void Preparer::begin(const std::vector<Range>& ranges) {
  std::vector<Points> points(ranges.size());
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    points[r].first = ranges[r].first;
    points[r].count = ranges[r].count;
  }
  impl_->begin(std::move(points));
}

void Preparer::next(const std::vector<PrepareTarget>& targets) {
  impl_->next(targets);
}

void Preparer::prepare_some(const std::int32_t* ids, std::int64_t count,
                            const std::vector<PrepareTarget>& targets) {
  Points points;
  points.count = count;
  points.ids = ids;
  impl_->prepare(points, targets);
}

void Preparer::check() { impl_->check(); }

}  // namespace cuda
}  // namespace fsknn
