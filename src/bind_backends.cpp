#include "bind_common.hpp"
#include "cpu/engine.hpp"
#include "cpu/kernels.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_backends() {
  Rcpp::CharacterVector sets;
  for (const cpu::Kernels* kernels : cpu::available_kernels())
    sets.push_back(kernels->name);
  const cuda::Status status = cuda::status();
  return Rcpp::List::create(
      Rcpp::_["cpu"] =
          Rcpp::List::create(Rcpp::_["instruction_sets"] = sets,
                             Rcpp::_["threads"] = cpu::num_processors()),
      Rcpp::_["cuda"] = Rcpp::List::create(
          Rcpp::_["built"] = status.built, Rcpp::_["usable"] = status.usable,
          Rcpp::_["reason"] = status.reason,
          Rcpp::_["toolkit"] = status.toolkit));
}

// [[Rcpp::export(rng = false)]]
Rcpp::DataFrame cpp_cuda_devices() {
  const std::vector<cuda::Device> found = cuda::devices();
  const int n = static_cast<int>(found.size());
  Rcpp::IntegerVector device(n), cuda_id(n), multiprocessors(n);
  Rcpp::CharacterVector name(n), capability(n);
  Rcpp::NumericVector total(n), free(n);
  for (int i = 0; i < n; ++i) {
    const cuda::Device& d = found[static_cast<std::size_t>(i)];
    device[i] = i + 1;
    cuda_id[i] = d.cuda_id;
    name[i] = d.name;
    capability[i] = std::to_string(d.major) + "." + std::to_string(d.minor);
    total[i] = d.bytes_total;
    free[i] = d.bytes_free;
    multiprocessors[i] = d.multiprocessors;
  }
  return Rcpp::DataFrame::create(
      Rcpp::_["device"] = device, Rcpp::_["cuda_id"] = cuda_id,
      Rcpp::_["name"] = name, Rcpp::_["compute_capability"] = capability,
      Rcpp::_["memory_total"] = total, Rcpp::_["memory_free"] = free,
      Rcpp::_["multiprocessors"] = multiprocessors,
      Rcpp::_["stringsAsFactors"] = false);
}
