// For tests only: faults that can't be provoked otherwise (see
// cuda/device/faults.hpp).

#include "bind_common.hpp"
#include "cuda/device/faults.hpp"

using namespace fsknn;

// fault: a list of text, nth, code and device (CUDA's numbers), or NULL for
// none. Returns how many calls the previous fault matched, and whether one
// failed.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_arm_fault(Rcpp::Nullable<Rcpp::List> fault) {
  const cuda::FaultReport report = cuda::disarm_fault();
  if (fault.isNotNull()) {
    const Rcpp::List list(fault);
    cuda::Fault f;
    f.text = Rcpp::as<std::string>(list["text"]);
    f.nth = static_cast<std::int64_t>(Rcpp::as<double>(list["nth"]));
    f.code = Rcpp::as<int>(list["code"]);
    f.device = Rcpp::as<int>(list["device"]);
    cuda::arm_fault(f);
  }
  return Rcpp::List::create(
      Rcpp::_["possible"] = cuda::can_inject(),
      Rcpp::_["matched"] = static_cast<double>(report.matched),
      Rcpp::_["fired"] = report.fired);
}

// machine: a list of code, driver, runtime and devices (a data frame of name,
// major, minor, total, free, multiprocessors, shared), or NULL for the real
// machine. Returns whether this build supports it.
// [[Rcpp::export(rng = false)]]
bool cpp_fake_machine(Rcpp::Nullable<Rcpp::List> machine) {
  if (machine.isNull()) {
    cuda::fake_machine(std::nullopt);
    return cuda::can_inject();
  }
  const Rcpp::List list(machine);
  cuda::FakeMachine fake;
  fake.code = Rcpp::as<int>(list["code"]);
  fake.driver = Rcpp::as<int>(list["driver"]);
  fake.runtime = Rcpp::as<int>(list["runtime"]);
  const Rcpp::List table = list["devices"];
  const Rcpp::CharacterVector name = table["name"];
  const Rcpp::IntegerVector major = table["major"], minor = table["minor"],
                            multiprocessors = table["multiprocessors"],
                            shared = table["shared"];
  const Rcpp::NumericVector total = table["total"], free = table["free"];
  for (int i = 0; i < name.size(); ++i) {
    cuda::Device device;
    device.cuda_id = i;
    device.name = name[i];
    device.major = major[i];
    device.minor = minor[i];
    device.bytes_total = total[i];
    device.bytes_free = free[i];
    device.multiprocessors = multiprocessors[i];
    device.shared_bytes = shared[i];
    fake.devices.push_back(device);
  }
  cuda::fake_machine(fake);
  return cuda::can_inject();
}
