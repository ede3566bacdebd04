#include "bind_common.hpp"
#include "core/base/filter_numbers.hpp"
#include "core/base/team.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

// Does not call CUDA, which takes time and can't be undone in a fork.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_cpu() {
  Rcpp::CharacterVector sets;
  for (const cpu::Kernels* kernels : cpu::available_kernels())
    sets.push_back(kernels->name);
  Rcpp::CharacterVector forms;
  for (const FilterNumbersEntry& entry : kFilterNumbers)
    forms.push_back(entry.name);
  return Rcpp::List::create(Rcpp::_["instruction_sets"] = sets,
                            Rcpp::_["filter_forms"] = forms,
                            Rcpp::_["threads"] = num_processors());
}

// Called when the package is unloaded.
// [[Rcpp::export(rng = false)]]
void cpp_give_back() { cuda::give_back_kept(); }

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_backends() {
  const cuda::Status status = cuda::status();
  Rcpp::RObject lost, why_not;
  if (status.lost) lost = bind::list_of(*status.lost);
  if (status.why_not) why_not = bind::list_of(*status.why_not);
  return Rcpp::List::create(
      Rcpp::_["cpu"] = cpp_cpu(),
      Rcpp::_["cuda"] = Rcpp::List::create(
          Rcpp::_["built"] = status.built, Rcpp::_["usable"] = status.usable(),
          Rcpp::_["why_not"] = why_not, Rcpp::_["toolkit"] = status.toolkit,
          Rcpp::_["architectures"] = status.architectures,
          Rcpp::_["left_out"] = bind::table_of(status.left_out),
          Rcpp::_["lost"] = lost));
}

// start: creates CUDA's context on every device that has none.
// [[Rcpp::export(rng = false)]]
Rcpp::DataFrame cpp_cuda_devices(bool start) {
  if (start) {
    // A device that can't be started reports no memory; the others do.
    const int count = static_cast<int>(cuda::devices().size());
    for (int row = 0; row < count; ++row) {
      try {
        cuda::start_devices({row});
      } catch (const Failure&) {
      }
    }
  }
  return bind::table_of(cuda::devices());
}

// Tests the arithmetic of every GPU: a list for each row of cpp_cuda_devices().
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_self_test() {
  Rcpp::List tests;
  for (const cuda::SelfTest& test : cuda::self_test())
    tests.push_back(Rcpp::List::create(Rcpp::_["finished"] = test.finished,
                                       Rcpp::_["why_not"] = test.why_not,
                                       Rcpp::_["failed"] = test.failed));
  return tests;
}
