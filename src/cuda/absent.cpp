// Linked where the package is built without CUDA: says so, and why.

#include "core/base/errors.hpp"
#include "cuda/backend.hpp"
#include "cuda/build_info.hpp"
#include "cuda/device/faults.hpp"

namespace fsknn {
namespace cuda {

static BackendFailure not_built() {
  BackendFailure failure(BackendFailure::Why::not_built);
  failure.detail = cuda_reason;
  return failure;
}

Status status() {
  Status s;
  s.why_not = not_built();
  return s;
}

std::vector<Device> devices() { return {}; }

std::vector<Device> start_devices(const std::vector<int>&) {
  throw not_built();
}

std::vector<SelfTest> self_test() { return {}; }

int row_of_device(int) { return -1; }

void find_neighbours(const Request&, const RowSource&, const RowSource*,
                     const Neighbours&, Progress*, Stats*) {
  throw not_built();
}

void find_within(const Request&, const Within&, const RowSource&,
                 const RowSource*, WithinAnswer&, Progress*, Stats*) {
  throw not_built();
}

PairCounts count_pairs(const Request&, const PairBins&, const RowSource&,
                       Progress*, Stats*) {
  throw not_built();
}

std::unique_ptr<TripleScanner> triple_scanner(const Request&,
                                              const PreparedPoints&) {
  throw not_built();
}

void find_between(const Request&, const Between&, const RowSource&, WithinRows&,
                  Progress*, Stats*) {
  throw not_built();
}

class HeldPoints::Impl {};

HeldPoints::HeldPoints(const Request&, const RowSource&) { throw not_built(); }

HeldPoints::~HeldPoints() = default;

void HeldPoints::choose_features(const std::vector<std::int32_t>&) {}

void HeldPoints::find_neighbours(const Request&, const RowSource*,
                                 const Neighbours&, Progress*, Stats*) {}

void HeldPoints::find_within(const Request&, const Within&, const RowSource*,
                             WithinAnswer&, Progress*, Stats*) {}

std::vector<HeldPoints::BytesOn> HeldPoints::bytes() const { return {}; }

void give_back_kept() noexcept {}

void prepared_rows(const Request&, const RowSource&,
                   const std::vector<std::int32_t>*, double*, double*) {
  throw not_built();
}

bool can_inject() { return false; }
void arm_fault(const Fault&) {}
FaultReport disarm_fault() { return {}; }
void fake_machine(const std::optional<FakeMachine>&) {}
}  // namespace cuda
}  // namespace fsknn
