// Distributes triples over the devices of a request.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/base/small_numbers.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/triples/triple_device.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The points on a device, whose memory is freed on that device.
class PointsOnDevice {
 public:
  PointsOnDevice(int device, const PreparedPoints& points,
                 const TripleSizes& sizes, const TableTerms& table)
      : device_(device), points_(new DeviceTriples(points, sizes, table)) {}
  PointsOnDevice(const PointsOnDevice&) = delete;
  PointsOnDevice& operator=(const PointsOnDevice&) = delete;
  ~PointsOnDevice() {
    const GivingBackOn device(device_);
    points_.reset();
  }
  DeviceTriples& get() const { return *points_; }

 private:
  const int device_;
  std::unique_ptr<DeviceTriples> points_;
};

class Scanner final : public TripleScanner {
 public:
  Scanner(const Request& request, const PreparedPoints& points)
      : devices_(request.devices) {
    const UsedDevices gpus(devices_);
    sizes_.num_points = points.size();
    sizes_.padded = points.padded;
    const GpuFacts facts = facts_of(gpus.all(), request.max_device_memory);
    usable_ = facts.bytes_usable();
    const TableTerms table = metric_of(request, points).table;
    if (table.copies > 0.0 && facts.capability < 80)
      throw Failure(
          "triples of alleles need a GPU of compute capability 8.0 or more");
    if (table.copies > 0.0)
      sizes_ = sizes_of_tables(sizes_, points.num_features,
                               static_cast<int>(table.copies));
    else
      choose_form(request, points, facts, gpus);
    plan(gpus, 0, 0);
    held_.resize(static_cast<std::size_t>(gpus.count()));
    Workers workers(nullptr, gpus.count());
    workers.run(gpus.count(), [&](int w) {
      const DeviceGuard guard(gpus.id(w));
      held_[static_cast<std::size_t>(w)].reset(
          new PointsOnDevice(gpus.id(w), points, sizes_, table));
    });
  }

  void find(const Task& task, const Take& take, TripleStats& stats,
            Progress* progress) override {
    TripleOrder order;
    order.take = &take;
    run(task, order, stats, nullptr, progress);
  }

  std::vector<std::int32_t> most_alike(const Task& task, std::int64_t count,
                                       Progress* progress) override {
    std::vector<std::int32_t> alike(task.apexes.size() *
                                    static_cast<std::size_t>(count));
    TripleOrder order;
    order.alike = alike.data();
    order.num_alike = count;
    TripleStats stats;
    run(task, order, stats, nullptr, progress);
    return alike;
  }

  void count(const Task& task, const std::vector<double>& breaks,
             std::vector<std::int64_t>& counts, TripleStats& stats,
             Progress* progress) override {
    TripleOrder order;
    order.breaks = &breaks;
    run(task, order, stats, &counts, progress);
  }

 private:
  void choose_form(const Request& request, const PreparedPoints& points,
                   const GpuFacts& facts, const UsedDevices& gpus) {
    const TripleForms forms(points.num_features, facts);
    const std::int32_t largest =
        forms.most_bits == 0
            ? -1
            : largest_whole(points.rows.data(), points.size() * points.padded,
                            forms.most_bits, request.num_threads);
    sizes_ = forms.sizes(sizes_, largest, usable_);
    if (sizes_.bits == 0) return;
    const DeviceGuard guard(gpus.id(0));
    if (!has_triple_bits()) sizes_ = forms.sizes(sizes_, -1, usable_);
  }

  TriplePlan plan(const UsedDevices& gpus, std::int64_t num_breaks,
                  std::int64_t num_alike) {
    sizes_.num_breaks = num_breaks;
    sizes_.num_alike = num_alike;
    const TriplePlan plan = plan_triples(sizes_, usable_);
    if (plan.lanes == 0)
      throw PlanFailure(PlanFailure::Held::triples,
                        least_bytes_of_triples(sizes_), usable_, gpus.id(0));
    return plan;
  }

  /// Chooses the form in which the order runs fastest. Sums with the apex alone
  /// are tighter in halves, and they decide most counts.
  void make_form(const UsedDevices& gpus, const TripleOrder& order) {
    if (sizes_.bits > 0) return;
    bool words = order.take != nullptr && !order.task->by_pairs;
    if (words) {
      const DeviceGuard guard(gpus.id(0));
      words = held_.front()->get().words_serve();
    }
    Workers workers(nullptr, gpus.count());
    workers.run(gpus.count(), [&](int w) {
      const DeviceGuard guard(gpus.id(w));
      held_[static_cast<std::size_t>(w)]->get().make(
          words ? TripleForm::words : TripleForm::halves);
    });
  }

  void run(const Task& task, TripleOrder order, TripleStats& stats,
           std::vector<std::int64_t>* counts, Progress* progress) {
    const std::int64_t count = static_cast<std::int64_t>(task.apexes.size());
    if (count == 0) return;
    const UsedDevices gpus(devices_);
    const TriplePlan plan_now =
        plan(gpus,
             order.breaks == nullptr
                 ? 0
                 : static_cast<std::int64_t>(order.breaks->size()),
             order.num_alike);
    order.task = &task;
    make_form(gpus, order);
    const int lanes = gpus.count() * plan_now.lanes;
    const std::int64_t batch = std::max<std::int64_t>(
        1, std::min(plan_now.apexes, count / (8 * lanes)));
    Workers workers(progress, count);
    std::atomic<std::int64_t> next{0};
    std::mutex taking, adding;
    workers.run(lanes, [&](int w) {
      const int device = w % gpus.count();
      const DeviceGuard guard(gpus.id(device));
      TripleLane lane(held_[static_cast<std::size_t>(device)]->get(), sizes_,
                      plan_now, order, workers, taking);
      for (;;) {
        const std::int64_t from = next.fetch_add(batch);
        if (from >= count) break;
        lane.run(from, std::min(count, from + batch));
      }
      const std::lock_guard<std::mutex> held(adding);
      stats.add(lane.stats());
      for (std::size_t b = 0; b < lane.counts().size(); ++b)
        (*counts)[b] += lane.counts()[b];
    });
  }

  const std::vector<int> devices_;
  TripleSizes sizes_;
  double usable_ = 0;
  std::vector<std::unique_ptr<PointsOnDevice>> held_;
};

}  // namespace

std::unique_ptr<TripleScanner> triple_scanner(const Request& request,
                                              const PreparedPoints& points) {
  return std::unique_ptr<TripleScanner>(new Scanner(request, points));
}

}  // namespace cuda
}  // namespace fsknn
